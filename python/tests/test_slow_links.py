"""Two hosts between which a step of whole gradients takes some twelve seconds: the plan is chosen after two of them, not three, and replays from there.

Each host is a network namespace of a lab. Oracle: one process; and for the replay, over a quicker network, the bits.
"""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import labs
import shoal
import tiny

MEMBERS, STEPS, WIDTH = 2, 6, 2000


def trained(plan="auto"):
    """The values after all steps, the ways of each step's plan, and the last one."""
    torch.manual_seed(1)
    net, optimizer = tiny.wrap(nn.Linear(WIDTH, WIDTH), plan=plan)
    ways = []
    for step in range(STEPS):
        ways.append(ways_of(json.loads(net.plan)))
        optimizer.zero_grad()
        loss(net, step, shoal.rank()).backward()
        optimizer.step()
    return tiny.values(net), ways, net.plan


def ways_of(plan) -> dict:
    return {plan["tensors"][t]["name"]: unit["way"] for unit in plan["units"] for t in unit["tensors"]}


def loss(net, step: int, rank: int):
    x, y = tiny.data(step, rank, width=WIDTH)
    return F.cross_entropy(net(x), y)


def member(folder):
    torch.set_num_threads(1)
    shoal.init()
    torch.save(trained(), f"{folder}/{shoal.rank()}")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    with labs.up("slow", "-n", str(MEMBERS), "--rate", "10mbit") as lab:
        labs.run_members(lab, MEMBERS, "test_slow_links", folder)
    return [torch.load(folder / str(rank)) for rank in range(MEMBERS)]


def test_two_long_steps_are_measured_before_the_plan_is_chosen(results):
    values, ways, plan = results[0]
    assert [step["weight"] == "factors" for step in ways] == [False] * 2 + [True] * (STEPS - 2)
    assert json.loads(plan)["measured_iterations"] == 2
    assert all(tiny.equal(others, values) and theirs == plan for others, _, theirs in results)
    torch.manual_seed(1)
    alone = nn.Linear(WIDTH, WIDTH)
    optimizer = tiny.sgd(alone)
    for step in range(STEPS):
        tiny.oracle_step(alone, optimizer, [lambda net, r=r: loss(net, step, r).backward() for r in range(MEMBERS)])
    for got, expected in zip(values, tiny.values(alone)):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


def goes_on(plan):
    net, _ = tiny.wrap(nn.Linear(WIDTH, WIDTH))
    net._core.continue_from(2, plan)
    return net._core.plan_is_final, net.plan


def test_a_checkpoint_after_two_of_them_goes_on_by_the_plan(results, pool):
    _, _, plan = results[0]
    assert pool(MEMBERS).run(goes_on, plan) == [(True, plan)] * MEMBERS


def test_a_replay_takes_the_plan_after_as_many(results, pool, tmp_path):
    values, ways, plan = results[0]
    saved = tmp_path / "plan.json"
    saved.write_text(plan)
    again, replayed, _ = pool(MEMBERS).run(trained, str(saved))[0]
    assert replayed == ways and tiny.equal(again, values)
