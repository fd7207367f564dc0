"""Every way in which gradients come about, against one process that runs all members' micro-batches."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from against_one import MEMBERS, RANKS, Tied, check, one_step, step_and_values


class Branches(nn.Module):
    """`used` says which of its branches take part."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.parts = nn.ModuleList([nn.Linear(6, 3) for _ in range(3)])

    def forward(self, x, used):
        return sum(self.parts[i](x) for i in used)


def branches_backward(net, step, rank, used):
    x, y = tiny.data(step, rank)
    F.cross_entropy(net(x, used), y).backward()


def unused(used_by_rank):
    net, optimizer = tiny.wrap(Branches())
    absent = None
    for step in range(3):
        optimizer.zero_grad()
        branches_backward(net, step, shoal.rank(), used_by_rank[shoal.rank()])
        optimizer.step()
        absent = [i for i, part in enumerate(net.parts) if part.weight.grad is None]
    return tiny.values(net), absent


@pytest.mark.parametrize("used, absent", [(([0, 1], [0]), [2]), (([0], [1]), [2]), (([0], [0]), [1, 2])])
def test_unused_parameters_count_as_zero_and_stay_none_where_nobody_has_them(pool, used, absent):
    results = pool(MEMBERS).run(unused, used)
    net = Branches()
    check([values for values, _ in results], net, tiny.sgd(net),
          [lambda n, s, r=r: branches_backward(n, s, r, used[r]) for r in RANKS], steps=3)
    assert [a for _, a in results] == [absent] * MEMBERS


def test_a_tied_parameter_leaves_once_with_the_sum_of_its_uses(pool):
    net = Tied()
    check(pool(MEMBERS).run(one_step, Tied), net, tiny.sgd(net), [lambda n, s, r=r: tiny.loss(n, s, r).backward() for r in RANKS])


def accumulate(steps):
    net, optimizer = tiny.wrap(tiny.model())
    for step in range(steps):
        optimizer.zero_grad()
        with net.no_sync():
            tiny.loss(net, 10 * step, shoal.rank()).backward()
            tiny.loss(net, 10 * step + 1, shoal.rank()).backward()
        tiny.loss(net, 10 * step + 2, shoal.rank()).backward()
        optimizer.step()
    return tiny.values(net)


def test_no_sync_gathers_here_and_the_last_backward_exchanges_the_sum(pool):
    def backward(net, step, rank):
        for part in range(3):
            tiny.loss(net, 10 * step + part, rank).backward()

    net = tiny.model()
    check(pool(MEMBERS).run(accumulate, 2), net, tiny.sgd(net), [lambda n, s, r=r: backward(n, s, r) for r in RANKS], steps=2)


def no_sync_reached_more(_):
    net, optimizer = tiny.wrap(Branches())
    optimizer.zero_grad()
    with net.no_sync():
        branches_backward(net, 0, shoal.rank(), [0, 1])
    branches_backward(net, 1, shoal.rank(), [0])
    optimizer.step()
    return tiny.values(net)


def test_what_only_no_sync_reached_is_exchanged_too(pool):
    def backward(net, step, rank):
        branches_backward(net, 0, rank, [0, 1])
        branches_backward(net, 1, rank, [0])

    net = Branches()
    check(pool(MEMBERS).run(no_sync_reached_more, 0), net, tiny.sgd(net), [lambda n, s, r=r: backward(n, s, r) for r in RANKS])


def two_backwards(retained):
    net, optimizer = tiny.wrap(tiny.model())
    optimizer.zero_grad()
    if retained:  # one forward, two passes
        loss = tiny.loss(net, 0, shoal.rank())
        loss.backward(retain_graph=True)
        (2 * loss).backward()
    else:
        tiny.loss(net, 0, shoal.rank()).backward()
        tiny.loss(net, 1, shoal.rank()).backward()
    return [p.grad.clone() for p in net.parameters()]


@pytest.mark.parametrize("retained", [False, True])
def test_a_second_backward_before_the_step_adds_to_the_mean(pool, retained):
    results = pool(MEMBERS).run(two_backwards, retained)
    assert tiny.equal(*results)
    net = tiny.model()

    def mean(scale, step):
        return tiny.mean_in_rank_order([tiny.gradients(net, lambda n, r=r: (scale * tiny.loss(n, step, r)).backward()) for r in RANKS])

    for got, a, b in zip(results[0], mean(1, 0), mean(2, 0) if retained else mean(1, 1)):
        torch.testing.assert_close(got, a + b, rtol=1e-5, atol=1e-6)


def reads_of_grad(_):
    net, optimizer = tiny.wrap(tiny.model())
    optimizer.zero_grad()
    tiny.loss(net, 0, shoal.rank()).backward()
    early = net.module[2].weight.grad.clone()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.05)
    clipped = [p.grad.clone() for p in net.parameters()]
    optimizer.step()
    return early, norm, clipped, tiny.values(net)


def test_every_read_of_grad_between_backward_and_step_sees_the_mean(pool):
    results = pool(MEMBERS).run(reads_of_grad, 0)
    net = tiny.model()
    optimizer = tiny.sgd(net)
    means = tiny.mean_in_rank_order([tiny.gradients(net, lambda n, r=r: tiny.loss(n, 0, r).backward()) for r in RANKS])
    for parameter, mean in zip(net.parameters(), means):
        parameter.grad = mean.clone()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.05)
    optimizer.step()
    for early, got_norm, clipped, values in results:
        assert torch.equal(early, means[2])
        assert torch.equal(got_norm, norm)
        assert tiny.equal(clipped, [p.grad for p in net.parameters()])
        assert tiny.equal(values, tiny.values(net))


def reads_by_a_hook(_):
    """Inside a backward pass .grad is the local one, as everywhere; waiting there would never end."""
    net, optimizer = tiny.wrap(tiny.model())
    seen = []
    net.module[4].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    step_and_values(net, optimizer, lambda: tiny.loss(net, 0, shoal.rank()).backward())
    return seen


def test_the_users_own_hooks_run_and_see_the_local_gradient(pool):
    results = pool(MEMBERS).run(reads_by_a_hook, 0)
    for rank in RANKS:
        expected = tiny.gradients(tiny.model(), lambda n: tiny.loss(n, 0, rank).backward())[4]
        assert tiny.equal(results[rank], [expected])


def zeroing(set_to_none):
    net, optimizer = tiny.wrap(tiny.model())
    for step in range(4):
        optimizer.zero_grad(set_to_none=set_to_none)
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=set_to_none)
    return tiny.values(net), [p.grad for p in net.parameters()]


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad_either_way(pool, set_to_none):
    results = pool(MEMBERS).run(zeroing, set_to_none)
    net = tiny.model()
    check([values for values, _ in results], net, tiny.sgd(net),
          [lambda n, s, r=r: tiny.loss(n, s, r).backward() for r in RANKS], steps=4)
    for _, left in results:
        assert all((g is None) if set_to_none else not g.any() for g in left)


def scheduled(_):
    net, optimizer = tiny.wrap(tiny.model())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    for step in range(5):
        step_and_values(net, optimizer, lambda: tiny.loss(net, step, shoal.rank()).backward())
        scheduler.step()
    return tiny.values(net), optimizer.param_groups[0]["lr"]


def test_learning_rate_schedulers(pool):
    results = pool(MEMBERS).run(scheduled, 0)
    net = tiny.model()
    optimizer = tiny.sgd(net)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    for step in range(5):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
        scheduler.step()
    for values, rate in results:
        assert tiny.equal(values, tiny.values(net)) and rate == optimizer.param_groups[0]["lr"]
