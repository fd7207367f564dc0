"""A layer's pairs where a batch comes in several passes, in bfloat16, or through compiled code: the gradient is the one without."""

import copy

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import shoal
import tiny
from test_factors import MEMBERS, SHAPE, STEPS, Alone, oracle, rows_of, train, wrapped


def raw_gradient(net):
    """What autograd has put into the wide weight's .grad, without asking for the rest of it."""
    return torch.Tensor.grad.__get__(net.module.wide.weight)


def one_pass(net, x, g):
    (net(x) * g).sum().backward()


def by_factors(net, folder, **of_layer):
    net, optimizer = wrapped(net, folder, **of_layer)
    for _ in range(STEPS):  # the plan takes over after the iterations that are measured
        optimizer.zero_grad()
        one_pass(net, *rows_of(shoal.rank()))
        optimizer.step()
    optimizer.zero_grad()
    return net, optimizer


# --- several passes

def in_parts(folder):
    """A batch in three parts: whether the first two stay pairs, whether the gradient has the bits of one product of all rows."""
    net, optimizer = by_factors(Alone(), folder)
    x, g = rows_of(shoal.rank())
    with net.no_sync():
        for part in (slice(0, 8), slice(8, 16)):
            given = x[part].clone()
            one_pass(net, given, g[part])
            given.zero_()  # as a loader does that reuses its memory
    held = raw_gradient(net) is None
    one_pass(net, x[16:], g[16:])
    ours = net.module.wide.weight.grad.clone()
    single = Alone()
    one_pass(single, *(torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size())))))
    optimizer.step()
    return held, torch.equal(ours, single.wide.weight.grad / shoal.size())


def test_what_no_sync_gathers_travels_as_pairs(pool, tmp_path):
    assert pool(2).run(in_parts, tmp_path) == [(True, True)] * 2


def looked_at(folder):
    """Between passes .grad is the sum of this member's; a step without an exchange uses it."""
    net, optimizer = by_factors(Alone(), folder)
    single = Alone()
    single.load_state_dict(net.module.state_dict())
    x, g = rows_of(shoal.rank())
    with net.no_sync():
        for part in (slice(0, 8), slice(8, 24)):
            one_pass(net, x[part], g[part])
            one_pass(single, x[part], g[part])
        seen = torch.equal(net.module.wide.weight.grad, single.wide.weight.grad)
        one_pass(net, x, g)
        one_pass(single, x, g)
    plain = torch.optim.SGD(single.parameters(), lr=0.1, momentum=0.9)
    plain.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.step()
    plain.step()
    return seen, tiny.equal(tiny.values(net.module), tiny.values(single))


def test_between_passes_without_exchange_the_gradient_is_what_autograd_would_have_gathered(pool, tmp_path):
    assert pool(2).run(looked_at, tmp_path) == [(True, True)] * 2


def many_rows(folder):
    """Whether pairs are held while they are shorter than their product, in turn; whether the mean is right."""
    net, optimizer = by_factors(Alone(), folder)
    x, g = rows_of(shoal.rank())
    held = []
    with net.no_sync():
        for _ in range(7):
            one_pass(net, x, g)
            held.append(raw_gradient(net) is None)
    one_pass(net, x, g)
    single = Alone()
    for rank in range(shoal.size()):
        x, g = rows_of(rank)
        for _ in range(8):
            one_pass(single, x, g / shoal.size())
    torch.testing.assert_close(net.module.wide.weight.grad, single.wide.weight.grad, rtol=1e-5, atol=1e-5)
    return held


def test_pairs_that_are_longer_than_their_product_are_multiplied(pool, tmp_path):
    fit = SHAPE[0] * SHAPE[1] // sum(SHAPE) // 24
    assert pool(2).run(many_rows, tmp_path) == [[i < fit for i in range(7)]] * 2


def fails_between(folder):
    """A forward pass fails between two that accumulate, and all is dropped: as if they had not been."""
    net, optimizer = by_factors(Alone(), folder)
    x, g = rows_of(shoal.rank())
    with net.no_sync():
        one_pass(net, x, g)
        with pytest.raises(RuntimeError):
            net(x[:, 1:])
    optimizer.zero_grad()
    one_pass(net, x, g)
    ours = net.module.wide.weight.grad.clone()
    optimizer.step()
    single = Alone()
    one_pass(single, *(torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size())))))
    torch.testing.assert_close(ours, single.wide.weight.grad / shoal.size(), rtol=1e-5, atol=1e-5)


def test_pairs_of_a_step_that_is_given_up_are_dropped(pool, tmp_path):
    pool(2).run(fails_between, tmp_path)


# --- bfloat16

def whole_batch_in_bf16(folder, compiled):
    """Whether the rows travel in bf16, and the gradient has the bits that autograd gives one process with all of them."""
    torch._dynamo.reset()
    net = Alone()
    net, optimizer = by_factors(torch.compile(net, backend="aot_eager", fullgraph=True) if compiled else net, folder, bf16_rows=1)
    x, g = rows_of(shoal.rank())
    with torch.autocast("cpu", torch.bfloat16):
        y = net(x)
    (y * g).sum().backward()
    ours = net.module.wide.weight.grad.clone()
    single = Alone()
    x, g = (torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size()))))
    with torch.autocast("cpu", torch.bfloat16):
        y = single(x)
    (y * g).sum().backward()
    optimizer.step()
    return torch.equal(ours, single.wide.weight.grad / shoal.size())


@pytest.mark.parametrize("compiled", [False, True])
def test_under_autocast_the_product_has_the_bits_of_one_large_batch(pool, tmp_path, compiled):
    assert pool(2).run(whole_batch_in_bf16, tmp_path, compiled) == [True, True]


def mixed(folder):
    """Passes in f32 and under autocast, whatever the plan has counted on: the gradient is the sum of what each gives alone."""
    worst = []
    for bf16_rows in (0, 1):
        net, optimizer = by_factors(Alone(), folder, bf16_rows=bf16_rows)
        single = Alone()
        for rank in range(shoal.size()):
            x, g = rows_of(rank)
            for low in (False, True):
                with torch.autocast("cpu", torch.bfloat16, enabled=low):
                    y = single(x)
                (y * g / shoal.size()).sum().backward()
        x, g = rows_of(shoal.rank())
        with torch.autocast("cpu", torch.bfloat16, enabled=not bf16_rows), net.no_sync():
            one_pass(net, x, g)
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(bf16_rows)):
            one_pass(net, x, g)
        theirs = single.wide.weight.grad
        worst.append(((net.module.wide.weight.grad - theirs).norm() / theirs.norm()).item())
        optimizer.step()
    return worst


def test_rows_of_two_types_give_one_mean(pool, tmp_path):
    for worst in pool(2).run(mixed, tmp_path):
        assert max(worst) < 2e-2  # bf16 has eight bits


def plain_layer_or_ours(_):
    """Output and gradients of a layer under autocast, ours and PyTorch's, and of the gradient's gradient."""
    results = []
    for wrap in (False, True):
        net = Alone()
        if wrap:
            net, _ = tiny.wrap(net)
        x, g = rows_of(0)
        x.requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            y = net(x)
        (first,) = torch.autograd.grad((y.float() ** 2).sum(), x, create_graph=True)
        inner = net.module if wrap else net
        results.append([y, first, *torch.autograd.grad((first ** 2).sum(), [x, inner.wide.weight])])
    ours, theirs = results
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=2e-2, atol=2e-2 * b.float().abs().max().item())
    return tiny.equal(ours[:2], theirs[:2])  # of the gradient's gradient PyTorch adds two parts in bf16, here in f32


def test_under_autocast_the_layer_computes_what_pytorchs_does(pool):
    assert pool(2).run(plain_layer_or_ours, None) == [True, True]


# --- what autograd keeps for the backward pass, and what it is asked for

class Recomputed(Alone):
    def forward(self, x):
        return checkpoint(self.wide, x, use_reentrant=False)


class Rounded(Alone):
    """Its hooks keep what autograd saves in bfloat16."""

    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.bfloat16() if t.is_floating_point() else t,
                                                      lambda t: t.float() if t.is_floating_point() else t):
            return self.wide(x)


def kept_otherwise(folder, kind):
    """Whether a pair left, whether the gradient has the bits of one process, and whether those are a plain layer's."""
    net, optimizer = by_factors(kind(), folder)
    one_pass(net, *rows_of(shoal.rank()))
    no_product = raw_gradient(net) is None
    ours = net.module.wide.weight.grad.clone()
    optimizer.step()
    single, plain = kind(), Alone()
    for alone in (single, plain):
        one_pass(alone, *(torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size())))))
    same = torch.equal(ours, single.wide.weight.grad / shoal.size())
    return no_product, same, torch.equal(single.wide.weight.grad, plain.wide.weight.grad)


@pytest.mark.parametrize("kind, as_plain", [(Recomputed, True), (Rounded, False)])
def test_a_pair_is_of_what_hooks_on_saved_tensors_give_back(pool, tmp_path, kind, as_plain):
    assert pool(2).run(kept_otherwise, tmp_path, kind) == [(True, True, as_plain)] * 2


def asked_for(folder):
    """torch.autograd.grad() of the weight, before and after the pass that exchanges: this member's own each time, and the mean is what it was."""
    net, optimizer = by_factors(Alone(), folder)
    x, g = rows_of(shoal.rank())
    own = Alone()
    one_pass(own, x, g)
    loss = (net(x) * g).sum()
    (before,) = torch.autograd.grad(loss, net.module.wide.weight, retain_graph=True)
    loss.backward(retain_graph=True)
    (after,) = torch.autograd.grad(loss, net.module.wide.weight)
    ours = net.module.wide.weight.grad.clone()
    optimizer.step()
    single = Alone()
    one_pass(single, *(torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size())))))
    return [torch.equal(before, own.wide.weight.grad), torch.equal(after, own.wide.weight.grad),
            torch.equal(ours, single.wide.weight.grad / shoal.size())]


def test_what_is_asked_for_without_a_backward_pass_is_this_members_own(pool, tmp_path):
    assert pool(2).run(asked_for, tmp_path) == [[True] * 3] * 2


def penalised(net, rank):
    """A loss of the weight's gradient, whose backward pass goes through the layer twice."""
    loss = net(rows_of(rank)[0]).square().mean()
    (slope,) = torch.autograd.grad(loss, net.wide.weight, create_graph=True)
    (loss + slope.square().sum()).backward()


def penalised_by_factors(folder):
    net, optimizer = by_factors(Alone(), folder)
    before = tiny.values(net.module)
    penalised(net, shoal.rank())
    ours = net.module.wide.weight.grad.clone()
    optimizer.step()
    return before, ours


def test_a_gradient_of_the_weights_gradient_is_exchanged(pool, tmp_path):
    for before, ours in pool(2).run(penalised_by_factors, tmp_path):
        single = Alone()
        single.load_state_dict(dict(zip(single.state_dict(), before)))
        means = tiny.mean_in_rank_order([tiny.gradients(single, lambda n, r=r: penalised(n, r)) for r in range(2)])
        assert (ours - means[0]).abs().max() <= 1e-6 * means[0].abs().max()


# --- compiled

@pytest.mark.parametrize("name, form", [("Net", "plain"), ("Net", "accumulated"), ("Net", "one without"), ("Unbiased", "plain"), ("Twice", "plain"),
                                        ("Elsewhere", "plain"), ("Same", "plain")])
@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_training_ends_like_one_process(pool, tmp_path, name, form, backend):
    results = pool(MEMBERS).run(train, name, tmp_path, form, backend)
    for values in results:
        assert tiny.equal(values, results[0])
        for ours, theirs in zip(values, oracle(name, form)):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def compiled_pairs(folder):
    """Whether compiled passes leave pairs, with and without an exchange, and how many graphs they were compiled into."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    net, optimizer = wrapped(torch.compile(Alone(), backend="aot_eager", fullgraph=True), folder)
    sent = []
    for _ in range(STEPS + 2):
        optimizer.zero_grad()
        x, g = rows_of(shoal.rank())
        with net.no_sync():
            one_pass(net, x[:8], g[:8])
        before = raw_gradient(net).count_nonzero().item()
        one_pass(net, x[8:], g[8:])
        sent.append((before, raw_gradient(net).count_nonzero().item()))
        ours = net.module.wide.weight.grad.clone()
        optimizer.step()
    single = Alone()
    one_pass(single, *(torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size())))))
    return sent[-1], torch.equal(ours, single.wide.weight.grad / shoal.size()), torch._dynamo.utils.counters["stats"]["unique_graphs"]


def test_compiled_passes_leave_pairs(pool, tmp_path):
    for sent, equal, graphs in pool(2).run(compiled_pairs, tmp_path):
        assert sent == (0, 0)
        assert equal
        assert graphs <= 2  # of two numbers of rows
