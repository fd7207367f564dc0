"""Lossy ways, end to end: members stay equal, training gets there, plan.json and the report name the way, and a resumed run has the
same bits as one that was never interrupted."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny

MEMBERS = 3
WAYS = ["bf16", "int8", "topk:0.02", "topk:0.02:0.9:6:1", "powersgd:2"]
WIDE = 160  # a weight of 160 x 160: large enough for every way


def make(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE), nn.Tanh(), nn.Linear(WIDE, 3))


def batch(step, rank):
    generator = torch.Generator("cpu").manual_seed(1000 * step + rank)
    x = torch.randn(16, 6, generator=generator, device="cpu").to(torch.get_default_device())
    return x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()  # something to learn


def steps(net, optimizer, numbers):
    for step in numbers:
        optimizer.zero_grad()
        x, y = batch(step, shoal.rank())
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def held_out(net):
    with torch.no_grad():
        x, y = batch(10**6, 0)
        return F.cross_entropy(net(x), y).item()


def trained(way, number):
    net = make()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.3), way)
    before = held_out(net.module)
    steps(net, optimizer, range(number))
    return tiny.values(net.module), json.loads(net.plan), before, held_out(net.module)


@pytest.mark.parametrize("way", WAYS)
def test_members_stay_equal_and_learn(pool, way):
    results = pool(MEMBERS).run(trained, way, 60)
    values, plan, before, after = results[0]
    assert all(tiny.equal(theirs, values) for theirs, *_ in results)
    assert plan["choice"] == way
    assert way in [unit["way"] for unit in plan["units"]]
    assert after < 0.7 * before
    exact = pool(MEMBERS).run(trained, "auto", 60)[0]
    assert not tiny.equal(values, exact[0]) and "lossy" not in json.dumps(exact[1])


def interrupted(way, folder, stop, end):
    net = make()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.3), way)
    steps(net, optimizer, range(stop))
    shoal.save(folder, net, optimizer)
    net.release()

    net = make(seed=2)
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.3), way)
    shoal.load(folder, net, optimizer)
    steps(net, optimizer, range(stop, end))
    return tiny.values(net.module)


@pytest.mark.parametrize("stop", [2, 5])  # before and after the plan was chosen
@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_has_the_bits_of_one_that_went_on(pool, tmp_path, way, stop):
    expected = pool(MEMBERS).run(trained, way, 9)[0][0]
    for values in pool(MEMBERS).run(interrupted, way, str(tmp_path / "saved"), stop, 9):
        assert tiny.equal(values, expected)


def momentum_beside(plan, momentum):
    """Of the optimizer for the wide weight, and for the rest 0.9: (exit code, line) where that is refused."""
    net = make()
    wide = net[2].weight
    groups = [{"params": [wide], "momentum": momentum}, {"params": [p for p in net.parameters() if p is not wide]}]
    try:
        net, optimizer = shoal.data_parallel(net, torch.optim.SGD(groups, lr=0.1, momentum=0.9), plan)
    except shoal.Error as error:
        return error.exit_code, str(error)
    steps(net, optimizer, range(6))
    return None


def test_momentum_is_kept_in_one_place(pool):
    for plan, momentum in (("auto,2.*=topk:0.01:0.9", 0.9), ("topk:0.01:0.9", 0.0)):
        for code, line in pool(2).run(momentum_beside, plan, momentum):
            assert code == 2 and "momentum" in line and "momentum=0" in line
    assert pool(2).run(momentum_beside, "auto,2.weight=topk:0.01:0.9", 0.0) == [None, None]


def small_ones(plan, momentum):
    """What has fewer than 16,384 elements is not made smaller."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.3, momentum=momentum), plan)
    steps(net, optimizer, range(20))
    return tiny.values(net.module)


def test_small_tensors_have_the_momentum_that_the_optimizer_has_not(pool):
    exact = pool(MEMBERS).run(small_ones, "auto", 0.9)[0]
    for ours in pool(MEMBERS).run(small_ones, "topk:0.01:0.9", 0.0):
        torch.testing.assert_close(ours, exact, rtol=1e-4, atol=1e-5)


def misspelt(way):
    net = make()
    try:
        shoal.data_parallel(net, tiny.sgd(net), way)
    except shoal.Error as error:
        return error.exit_code, str(error)


@pytest.mark.parametrize("way, said", [("topk", "wrong number of arguments"), ("topk:2", 'the share "2" is no number from 1e-06 to 1'),
                                       ("powersgd:1.5", "the rank is not whole"), ("auto,0.*=int9", 'there is no way "int9"')])
def test_a_way_that_is_misspelt_is_one_line(pool, way, said):
    for code, line in pool(2).run(misspelt, way):
        assert code == 2 and said in line and "\n" not in line
