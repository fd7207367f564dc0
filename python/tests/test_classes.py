"""The promises about bits (classes R, D and G): replicas equal, runs equal, and equal to one process that accumulates."""

import json
import os
import random
import sys
import time

import pytest
import torch

import shoal
import tiny


def train(steps: int, plan: str = "auto", delays: int | None = None):
    """Trains and returns this member's values and its plan; `delays` seeds random pauses before backward and step."""
    pauses = random.Random(None if delays is None else delays + shoal.rank())
    net = tiny.model(seed=1 + shoal.rank())  # rank 0's values become everybody's
    net, optimizer = tiny.wrap(net, plan=plan)
    for step in range(steps):
        optimizer.zero_grad()
        loss = tiny.loss(net, step, shoal.rank())
        if delays is not None:
            time.sleep(pauses.uniform(0, 0.01))
        loss.backward()
        if delays is not None:
            time.sleep(pauses.uniform(0, 0.01))
        optimizer.step()
    return tiny.values(net), net.plan


def trained_alone(members: int, steps: int):
    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in range(steps):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in range(members)])
    return tiny.values(net)


@pytest.mark.parametrize("members", [2, 3])
def test_members_equal_each_other_and_one_process_that_accumulates(pool, members):
    results = pool(members).run(train, 6)
    expected = trained_alone(members, 6)
    for values, _ in results:
        assert tiny.equal(values, expected)


def test_a_saved_plan_gives_the_same_bits_whatever_the_timing(pool, tmp_path):
    first = pool(3).run(train, 8)
    saved = tmp_path / "plan.json"
    saved.write_text(first[0][1])
    for seed in (1, 2):
        again = pool(3).run(train, 8, str(saved), seed)
        for (values, plan), (expected, _) in zip(again, first):
            assert tiny.equal(values, expected)
            assert plan == first[0][1]


def test_a_plan_of_any_way_keeps_members_equal(pool, tmp_path):
    plan = json.loads(pool(3).run(train, 4)[0][1])
    for unit in plan["units"]:
        unit["way"] = "ring"  # adds in rotated order: other bits, the same on all members
    saved = tmp_path / "ring.json"
    saved.write_text(json.dumps(plan))
    results = pool(3).run(train, 5, str(saved))
    assert tiny.equal(results[0][0], results[1][0]) and tiny.equal(results[0][0], results[2][0])
    for got, expected in zip(results[0][0], trained_alone(3, 5)):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_a_choice_gives_each_tensor_its_way_and_is_saved_with_the_plan(pool):
    results = pool(3).run(train, 5, "ring,2.*=chain")
    plan = json.loads(results[0][1])
    assert plan["choice"] == "ring,2.*=chain"
    names = [tensor["name"] for tensor in plan["tensors"]]
    for unit in plan["units"]:
        assert {names[t].startswith("2.") for t in unit["tensors"]} == {unit["way"] == "chain"}, unit
    for values, saved in results:
        assert tiny.equal(values, results[0][0]) and saved == results[0][1]


def train_and_fit(steps: int):
    """Rank 1 asks for a fit after the fifth step. This member's values, the plan before and after, and how often it was fitted."""
    net, optimizer = tiny.wrap(tiny.model())
    plans = []
    for step in range(steps):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        plans.append(net.plan)
        if step == 4 and shoal.rank() == 1:
            net.fit_plan()
    return tiny.values(net), plans[4], net.plan, net._core.fits


def train_until_waits_drift(steps: int):
    """Rank 1 is late from some step on: rank 0's waits drift, and all look at what their links give."""
    net, optimizer = tiny.wrap(tiny.model())
    for step in range(steps):
        if step > 45 and shoal.rank() == 1:
            time.sleep(0.05)
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
    return tiny.values(net), net._core.fits


def test_where_links_explain_no_drift_all_members_measure_them(pool):
    results = pool(3).run(train_until_waits_drift, 120)
    assert [fits for _, fits in results] == [1, 1, 1]
    assert all(torch.equal(mine, first) for values, _ in results for mine, first in zip(values, results[0][0]))


def test_a_plan_that_was_fitted_anew_and_the_one_before_replay_the_same_bits(pool, tmp_path):
    fitted = pool(3).run(train_and_fit, 9)
    values, before, after, _ = fitted[0]
    assert [fits for *_, fits in fitted] == [1, 1, 1]
    assert json.loads(before)["link"] != json.loads(after)["link"], "the links were measured again"
    assert all(tiny.equal(other[0], values) and other[2] == after for other in fitted)
    for name, plan in (("before", before), ("after", after)):
        saved = tmp_path / f"{name}.json"
        saved.write_text(plan)
        again = pool(3).run(train, 9, str(saved))
        assert tiny.equal(again[0][0], values), name


def test_a_plan_settles_on_its_own_iterations_and_replays_the_same_bits(pool, tmp_path):
    values, plan = pool(3).run(train, 20)[0]
    assert json.loads(plan)["settled"] == 1, "what it predicts is of iterations by it"
    saved = tmp_path / "settled.json"
    saved.write_text(plan)
    again, replayed = pool(3).run(train, 20, str(saved))[0]
    assert tiny.equal(again, values) and json.loads(replayed) == json.loads(plan)


LATE = 0.05  # seconds


def train_beside_a_slow_one(steps: int, in_the_pass: bool):
    """Rank 1 computes for longer than the others, or its data come late. What an iteration is foreseen to take."""
    model = tiny.model()
    late = (lambda: time.sleep(LATE)) if shoal.rank() == 1 else (lambda: None)
    if in_the_pass:
        model.register_forward_pre_hook(lambda *_: late())
    net, optimizer = tiny.wrap(model)
    for step in range(steps):
        if not in_the_pass:
            late()
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
    plan = json.loads(net.plan)
    return plan["settled"], plan["predicted_seconds"]


@pytest.mark.parametrize("in_the_pass", [True, False])
def test_an_iteration_is_foreseen_as_long_as_the_slowest_members(pool, in_the_pass):
    for settled, seconds in pool(3).run(train_beside_a_slow_one, 20, in_the_pass):
        assert settled and seconds >= LATE


SLOW = 0.03  # seconds a parameter


def step_slowly(steps: int, passes: int):
    """By priority. What a plan has settled on, and for how many parameters."""
    rules = sys.modules[torch.optim.SGD.__module__]
    rule = rules.sgd

    def slowly(parameters, *rest, **options):
        time.sleep(SLOW * len(parameters))
        rule(parameters, *rest, **options)

    model = tiny.model()
    net, optimizer = tiny.wrap(model, plan="p3")
    rules.sgd = slowly
    try:
        for step in range(steps):
            optimizer.zero_grad()
            for _ in range(passes - 1):
                with net.no_sync():
                    tiny.loss(net, step, shoal.rank()).backward()
            tiny.loss(net, step, shoal.rank()).backward()
            optimizer.step()
        net.flush()
    finally:
        rules.sgd = rule
    return json.loads(net.plan), len(list(model.parameters()))


@pytest.mark.parametrize("passes", [1, 2])
def test_what_parameters_take_behind_their_gates_is_no_part_of_the_forward_pass(pool, passes):
    plan, parameters = pool(3).run(step_slowly, 20, passes)[0]
    assert plan["settled"] and plan["order"] == "priority"
    assert plan["step_seconds"] >= plan["placing_seconds"] >= 0.9 * SLOW * parameters
    assert plan["forward_seconds"] < SLOW / 2  # those of the first layers are late, so there are some


LARGE = 257 * 511  # elements: one tensor that travels alone, in chunks that do not come out even


def train_large(steps: int, plan: str = "auto"):
    """Values, and the way that each step took."""
    net, optimizer = tiny.wrap(large_model(), plan=plan)
    ways = []
    for step in range(steps):
        ways.append(json.loads(net.plan)["units"][0]["way"])
        optimizer.zero_grad()
        large_loss(net, step, shoal.rank()).backward()
        optimizer.step()
    return tiny.values(net), ways, net.plan


def large_model():
    torch.manual_seed(1)
    return torch.nn.Linear(511, 257, bias=False)


def large_loss(net, step: int, rank: int):
    x, _ = tiny.data(step, rank, 8, 511)
    return torch.logsumexp(net(x), 1).sum()


def added_as(way: str, parts: list[torch.Tensor]) -> torch.Tensor:
    """The mean, in the order that the program of this name declares (docs/collectives.md)."""
    members = len(parts)
    if way == "ring":  # chunk c begins with the member after c and ends with c
        chunks = [part.flatten().tensor_split(members) for part in parts]
        total = torch.cat([sum((chunks[(c + i) % members][c] for i in range(2, members + 1)), chunks[(c + 1) % members][c])
                           for c in range(members)]).view_as(parts[0])
    elif way in ("halving_doubling", "recursive_doubling") and members == 4:
        far = way == "halving_doubling"  # partners: two places away first, or neighbours first
        total = (parts[0] + parts[2]) + (parts[1] + parts[3]) if far else (parts[0] + parts[1]) + (parts[2] + parts[3])
    else:  # rank order; with three members the trees are (g0 + g1) + g2 too
        total = sum(parts[1:], parts[0])
    return total / members


@pytest.mark.parametrize("members", [3, 4])
@pytest.mark.parametrize("way", ["direct", "ring", "halving_doubling"])
def test_a_replay_adds_in_the_order_of_the_plans_program(pool, tmp_path, members, way):
    plan = json.loads(pool(members).run(train_large, 4)[0][2])
    assert [tensor["count"] for tensor in plan["tensors"]] == [LARGE]
    plan["units"][0]["way"] = way
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(plan))
    results = pool(members).run(train_large, 6, str(saved))
    assert results[0][1][-1] == way

    net = large_model()
    optimizer = tiny.sgd(net)
    for step in range(6):
        parts = [tiny.gradients(net, lambda n, r=r: large_loss(n, step, r).backward())[0] for r in range(members)]
        net.weight.grad = added_as(results[0][1][step], parts)
        optimizer.step()
    for values, ways, _ in results:
        assert ways == results[0][1]
        assert tiny.equal(values, tiny.values(net))


def unequal_batches(steps: int):
    net, optimizer = tiny.wrap(tiny.model())
    for step in range(steps):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank(), 4 + 3 * shoal.rank()).backward()
        optimizer.step()
    return tiny.values(net)


def test_members_weigh_by_their_samples(pool):
    results = pool(2).run(unequal_batches, 3)
    assert tiny.equal(results[0], results[1])
    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in range(3):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r, 4 + 3 * r).backward() for r in range(2)], [4, 7])
    for got, expected in zip(results[0], tiny.values(net)):
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)


# A gloo group that ends at once waits for its thread while it has Python's lock, which that thread may still need to let go
# of the last operation. Groups stay until the process ends.
_groups = []


def ddp_on_gloo(steps: int, store: str):
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # gloo would look for this host's name
    # -1: the file stays, and no member looks for it after another has removed it.
    dist.init_process_group("gloo", store=dist.FileStore(store, -1), rank=shoal.rank(), world_size=shoal.size())
    _groups.append(dist.group.WORLD)
    try:
        net = torch.nn.parallel.DistributedDataParallel(tiny.model())
        optimizer = tiny.sgd(net)
        for step in range(steps):
            optimizer.zero_grad()
            tiny.loss(net, step, shoal.rank()).backward()
            optimizer.step()
        return tiny.values(net.module)
    finally:
        dist.destroy_process_group()


def test_twenty_steps_equal_ddp_on_gloo(pool, tmp_path):
    ours = pool(2).run(train, 20)
    theirs = pool(2).run(ddp_on_gloo, 20, str(tmp_path / "store"))
    for (values, _), expected in zip(ours, theirs):
        for got, want in zip(values, expected):
            torch.testing.assert_close(got, want, rtol=0, atol=1e-5)
