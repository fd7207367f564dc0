"""Local steps: what members come together to is what one process that plays all of them computes, bit for bit, in whatever loop."""

import json

import pytest
import torch
from torch import nn

import shoal
import tiny
from players import Players, Wide, adam, averaged, detached, take_step, trained


@pytest.mark.parametrize("members, plan, steps", [(2, "local:4", 10), (3, "local:4,*=direct", 10), (3, "local:1,*=direct", 3),
                                                  (2, "diloco:4", 14), (3, "diloco:3:1:0.5:0,*=direct", 8), (2, "diloco:6:3", 20),
                                                  (2, "diloco:5:2:1:0", 13), (3, "diloco:4:4,*=direct", 11)])
@pytest.mark.parametrize("inner", [tiny.sgd, adam])
def test_members_come_together_to_the_bits_of_one_process_that_plays_all_of_them(pool, members, plan, steps, inner):
    results = pool(members).run(trained, plan, steps, tiny.model, inner)
    one = Players(results[0][2], [steps] * members, tiny.model, inner).run()
    for rank, (before, _, _) in enumerate(results):
        assert tiny.equal(before, detached(averaged(one.nets[rank])))
    one.end()
    for rank, (_, after, _) in enumerate(results):
        assert tiny.equal(after, detached(averaged(one.nets[rank])))
        assert tiny.equal(after, detached(one.old))


def test_running_statistics_are_averaged_and_counts_follow(pool):
    results = pool(2).run(trained, "local:4", 6, tiny.Normalised, tiny.sgd)
    one = Players(results[0][2], [6, 6], tiny.Normalised, tiny.sgd).run().end()
    for _, after, _ in results:
        assert tiny.equal(after, detached(averaged(one.nets[0])))


class Whole(nn.Module):
    """Whole numbers all the way: member r's gradient is 4 r + 2 in every step."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(5.0))

    def forward(self, rank):
        return (self.weight * (4 * rank + 2)).sum()


def whole_numbers(plan, steps):
    net = Whole()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=1), plan)
    for _ in range(steps):
        optimizer.zero_grad()
        net.samples(1)
        net(shoal.rank()).backward()
        optimizer.step()
    return net.weight.detach().clone()


@pytest.mark.parametrize("plan, steps, expected", [
    ("local:3", 3, torch.arange(5.0) - 3 * 4),         # the mean of 2 and 6, in three steps: parameters go down, as gradients say
    ("diloco:3:1:1:0", 3, torch.arange(5.0) - 12),     # the same by its outer optimizer
    ("diloco:2:1:1:0.5", 4, torch.arange(5.0) - 8 * 1.5 - 8 * (1 + 0.5 * 1.5)),  # g = 8 twice: v = 8, 12
])
def test_the_outer_gradient_points_where_members_went(pool, plan, steps, expected):
    for values in pool(2).run(whole_numbers, plan, steps):
        assert torch.equal(values, expected)


def exact(plan, steps, training=True):
    net = tiny.model().train(training)
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1), plan)
    for step in range(steps):
        take_step(net, optimizer, step, shoal.rank())
    return tiny.values(net)


@pytest.mark.parametrize("training", [True, False], ids=["training", "as in evaluation"])  # who tunes a model whose statistics are to stay
def test_one_step_without_momentum_is_the_exact_step_up_to_rounding(pool, training):
    for local, every in zip(pool(2).run(exact, "local:1", 6, training), pool(2).run(exact, "direct", 6)):
        assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(local, every))


def test_alone_it_is_plain_training():
    net, plain = tiny.model(), tiny.model()
    net, optimizer = shoal.data_parallel(net, tiny.sgd(net), "diloco:2:2")
    by = tiny.sgd(plain)
    for step in range(5):
        take_step(net, optimizer, step, 0)
        take_step(plain, by, step, 0)
    net.flush()
    assert tiny.equal(tiny.values(net), tiny.values(plain))


# --- in any loop


def uneven(plan, steps_by_rank, epochs):
    net = tiny.model()
    net, optimizer = shoal.data_parallel(net, tiny.sgd(net), plan)
    for _ in range(epochs):
        with net.join():
            for step in range(steps_by_rank[shoal.rank()]):
                take_step(net, optimizer, step, shoal.rank())
    return tiny.values(net), json.loads(net.plan)


@pytest.mark.parametrize("plan", ["local:4", "local:3", "diloco:4"])
@pytest.mark.parametrize("steps", [[3, 10], [9, 2], [0, 5], [8, 8]])
def test_who_runs_out_of_data_waits_and_all_end_alike(pool, plan, steps):
    results = pool(2).run(uneven, plan, steps, 1)
    one = Players(results[0][1], steps, tiny.model, tiny.sgd).run().end()
    for values, _ in results:
        assert tiny.equal(values, detached(one.old))


@pytest.mark.parametrize("plan", ["local:4", "diloco:4:2", "diloco:6:3"])
def test_uneven_epochs_end_alike(pool, plan):
    results = pool(3).run(uneven, plan, [2, 9, 5], 3)
    assert all(tiny.equal(values, results[0][0]) for values, _ in results)


def in_some_way(kind):
    net = tiny.model()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3) if kind == "closure" else tiny.sgd(net)
    net, optimizer = shoal.data_parallel(net, optimizer, "diloco:4:2")
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=2)
    for step in range(9):
        optimizer.zero_grad()
        loss = lambda: tiny.loss(net, step, shoal.rank())  # noqa: E731
        if kind == "closure":
            def closure():
                optimizer.zero_grad()
                value = loss()
                value.backward()
                return value

            optimizer.step(closure)
            continue
        if kind == "accumulation":
            with net.no_sync():
                loss().backward()
        if kind == "scaler":
            factor = float("inf") if step == 2 and shoal.rank() == 1 else 1.0  # this member alone skips a step
            scaler.scale(loss() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            continue
        if kind != "without a gradient" or step % 3 or shoal.rank():
            loss().backward()
        if kind == "clipping":
            nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        optimizer.step()
    net.flush()
    return tiny.values(net)


@pytest.mark.parametrize("kind", ["closure", "accumulation", "scaler", "clipping", "without a gradient"])
def test_any_loop_and_optimizer_ends_alike(pool, kind):
    results = pool(2).run(in_some_way, kind)
    assert tiny.equal(results[0], results[1]) and all(torch.isfinite(t).all() for t in results[0])
    assert not tiny.equal(results[0], tiny.values(tiny.model()))


def own_gradient(_):
    net = tiny.model()
    net, optimizer = shoal.data_parallel(net, tiny.sgd(net), "local:4")
    tiny.loss(net, 0, shoal.rank()).backward()
    own = tiny.gradients(net.module, lambda n: tiny.loss(n, 0, shoal.rank()).backward())
    return tiny.equal([p.grad for p in net.parameters()], own)


def test_gradients_are_this_members_own(pool):
    assert pool(2).run(own_gradient, 0) == [True, True]


def set_from_outside(_):
    """The values that a script loads on all members are what they go on from: no outer gradient comes from them."""
    net = tiny.model()
    net, optimizer = shoal.data_parallel(net, tiny.sgd(net), "diloco:2:2")
    for step in range(3):
        take_step(net, optimizer, step, shoal.rank())
    loaded = tiny.model(seed=5).state_dict()
    net.load_state_dict(loaded)
    net.flush()
    return tiny.equal(tiny.values(net), list(loaded.values()))


def test_values_that_are_loaded_stay(pool):
    assert pool(2).run(set_from_outside, 0) == [True, True]


@pytest.mark.parametrize("plan", ["local:3,*=int8", "diloco:4:2,*=topk:0.1", "diloco:2,*=bf16"])
def test_differences_travel_by_lossy_ways_too(pool, plan):
    results = pool(2).run(trained, plan, 12, Wide, tiny.sgd)
    assert tiny.equal(results[0][1], results[1][1])
    assert plan.rsplit("=", 1)[1] in {unit["way"] for unit in results[0][2]["units"]}
    exact = pool(2).run(trained, plan.split(",")[0], 12, Wide, tiny.sgd)[0][1]
    assert not tiny.equal(exact, results[0][1])
    assert all(torch.allclose(a, b, atol=0.1) for a, b in zip(exact, results[0][1]))
