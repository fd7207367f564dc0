"""Layers whose gradients travel by their factors: the end is that of a single process, to the last bit where it had the whole batch."""

import copy
import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny

MEMBERS = 3
STEPS = 5
SHAPE = (256, 300)  # 300 x 256 elements: large enough to be considered


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.first, self.wide, self.last = nn.Linear(6, SHAPE[0]), nn.Linear(*SHAPE), nn.Linear(SHAPE[1], 3)
        self.without = False  # the layers up to the wide one's weight

    def forward(self, x):
        wide = self.wide.bias.expand(len(x), -1) if self.without else self.wide(torch.tanh(self.first(x)))
        return self.last(torch.tanh(wide))


class Twice(Net):
    """A layer that is used twice, the second time for a sequence."""

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        both = self.wide(hidden) + self.wide(hidden.unsqueeze(1).repeat(1, 2, 1)).sum(1)
        return self.last(torch.tanh(both))


class Elsewhere(Net):
    """A weight that something besides its layer uses."""

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        return self.last(torch.tanh(self.wide(hidden) + F.linear(hidden, self.wide.weight)))


class Unbiased(Net):
    def __init__(self):
        super().__init__()
        self.wide.bias = None


NETS = {net.__name__: net for net in (Net, Twice, Elsewhere, Unbiased)}


def plan_by_factors(net, ranks, order="fifo", **of_layer):
    """A plan in which the wide layer's weight goes by factors and everything else in one unit."""
    tensors = [{"name": name, "type": "f32", "count": p.numel(), "first_use": i, "backward_at": -1.0}
               for i, (name, p) in enumerate(net.named_parameters())]
    (wide,) = [i for i, t in enumerate(tensors) if t["name"] == "wide.weight"]
    tensors[wide] |= {"rows": 8, "outputs": SHAPE[1], **of_layer}

    def unit(of, way):
        return {"tensors": of, "way": way, "slice_bytes": 16384, "priority": 0, "predicted_seconds": 0.0, "predicted_exposed": 0.0}

    link = {"alpha": 1e-4, "rate": 1e8, "add_rate": 1e9, "fan_in": 0.0, "fan_in_alpha": 0.0}
    return json.dumps({"version": 1, "ranks": ranks, "order": order, "link": link, "forward_seconds": 0.0, "backward_seconds": 0.0, "tensors": tensors,
                       "units": [unit([wide], "factors"), unit([i for i in range(len(tensors)) if i != wide], "direct")]})


def wrapped(net, folder, order="fifo", **of_layer):
    plan = folder / f"plan-{shoal.rank()}.json"
    plan.write_text(plan_by_factors(net, shoal.size(), order, **of_layer))
    net, optimizer = tiny.wrap(net, plan=str(plan))
    if order == "priority":
        net._steps._core = tiny.Late(net._core)
    return net, optimizer


def train(name, folder, form="plain"):
    net = NETS[name]()
    net, optimizer = wrapped(net, folder, "priority" if form in ("by parameter", "dropped at once") else "fifo")
    for step in range(STEPS):
        optimizer.zero_grad()
        if form == "accumulated":
            with net.no_sync():
                tiny.loss(net, 100 + step, shoal.rank()).backward()
        net.module.without = form == "one without" and shoal.rank() == 1
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        if form == "dropped at once":
            net.zero_grad()
    net.flush()
    return tiny.values(net.module)


def oracle(name, form="plain"):
    """One process that runs every member's batch and takes the mean."""
    net = NETS[name]()
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(MEMBERS):
            net.without = form == "one without" and rank == 1
            (tiny.loss(net, step, rank) / MEMBERS).backward()
            if form == "accumulated":
                (tiny.loss(net, 100 + step, rank) / MEMBERS).backward()
        optimizer.step()
    return tiny.values(net)


@pytest.mark.parametrize("name, form", [("Net", "plain"), ("Net", "accumulated"), ("Net", "one without"), ("Net", "by parameter"),
                                        ("Net", "dropped at once"), ("Unbiased", "plain"), ("Twice", "plain"), ("Elsewhere", "plain")])
def test_training_ends_like_one_process(pool, tmp_path, name, form):
    results = pool(MEMBERS).run(train, name, tmp_path, form)
    expected = oracle(name, form)
    for values in results:
        assert tiny.equal(values, results[0])
        for ours, theirs in zip(values, expected):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


class Alone(nn.Module):
    """The wide layer alone, whose factors are the data themselves."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.wide = nn.Linear(*SHAPE)

    def forward(self, x):
        return self.wide(x)


def rows_of(rank):
    generator = torch.Generator().manual_seed(rank)
    return torch.randn(24, SHAPE[0], generator=generator), torch.randn(24, SHAPE[1], generator=generator)


def whole_batch(folder):
    """Whether the gradient has the bits of a single process whose batch is all members' in rank order."""
    net = Alone()
    net, optimizer = wrapped(net, folder)
    for _ in range(STEPS):  # the plan takes over after the iterations that are measured
        optimizer.zero_grad()
        x, g = rows_of(shoal.rank())
        (net(x) * g).sum().backward()
        ours = net.module.wide.weight.grad.clone()
        optimizer.step()
    single = Alone()
    x, g = (torch.cat(parts) for parts in zip(*(rows_of(rank) for rank in range(shoal.size()))))
    (single(x) * g).sum().backward()
    return torch.equal(ours, single.wide.weight.grad / shoal.size())


def test_the_product_has_the_bits_of_one_large_batch(pool, tmp_path):
    assert pool(2).run(whole_batch, tmp_path) == [True, True]


def whole_batch_in_bf16(folder):
    """Whether the rows travel in bf16, and the gradient has the bits that autograd gives one process with all of them."""
    net, optimizer = by_factors(Alone(), folder, bf16_rows=1)
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


def test_under_autocast_the_product_has_the_bits_of_one_large_batch(pool, tmp_path):
    assert pool(2).run(whole_batch_in_bf16, tmp_path) == [True, True]


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
    return all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(*results))


def test_under_autocast_the_layer_computes_what_pytorchs_does(pool):
    assert pool(2).run(plain_layer_or_ours, None) == [True, True]


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
    plain.load_state_dict(optimizer.state_dict())
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


def layer_between(_):
    net, optimizer = tiny.wrap(Net())
    seen = []
    tiny.loss(net, 0, shoal.rank()).backward()
    twin = copy.deepcopy(net.module)
    seen.append(twin.wide.forward.__func__ is nn.Linear.forward and twin.wide.forward.__self__ is twin.wide)
    optimizer.step()
    seen.append("forward" not in net.module.wide.__dict__)
    return seen


def test_between_steps_the_model_is_what_it_was_and_a_copy_is_plain(pool):
    assert pool(2).run(layer_between, None) == [[True, True]] * 2


def parted(folder):
    """One member's parameter comes to differ in its last bit."""
    net, optimizer = wrapped(Net(), folder)
    ways = []
    for step in range(110):
        if step == 20 and shoal.rank() == 1:
            net.flush()
            with torch.no_grad():
                net.module.wide.weight.view(torch.int32)[0, 0] ^= 1
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        ways.append("factors" in net.plan)
    net.flush()
    return tiny.values(net), ways


def test_replicas_that_part_are_seen_mended_and_exchange_whole_gradients(pool, tmp_path):
    (first, ways), *others = pool(MEMBERS).run(parted, tmp_path)
    assert ways[30] and not ways[-1]
    for values, theirs in others:
        assert tiny.equal(values, first)
        assert theirs == ways
