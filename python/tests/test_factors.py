"""Layers whose gradients travel by their factors: the end is that of a single process, to the last bit where it had the whole batch."""

import copy
import json
import pickle
import re
import subprocess
import sys
import types

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from pool import launch, notes_of_run

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


class Same(Net):
    """Two equal uses of a layer: a compiler sees that they are."""

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        return self.last(torch.tanh(self.wide(hidden) + self.wide(hidden)))


class Unbiased(Net):
    def __init__(self):
        super().__init__()
        self.wide.bias = None


NETS = {net.__name__: net for net in (Net, Twice, Elsewhere, Same, Unbiased)}


def plan_by_factors(net, ranks, order="fifo", **of_layer):
    """A plan in which the wide layer's weight goes by factors and everything else in one unit."""
    tensors = [{"name": name, "type": "f32", "count": p.numel(), "first_use": i, "backward_at": -1.0}
               for i, (name, p) in enumerate(net.named_parameters())]
    (wide,) = [i for i, t in enumerate(tensors) if t["name"].endswith("wide.weight")]
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


def expect_near(values, expected):
    """End to end within 1e-6 of the largest number of each tensor: the rest is the order in which products are added."""
    for ours, theirs in zip(values, expected):
        assert (ours - theirs).abs().max() <= 1e-6 * theirs.abs().max()


def train(name, folder, form="plain", backend=None):
    torch._dynamo.reset()
    net = NETS[name]()
    net = torch.compile(net, backend=backend, fullgraph=True) if backend else net
    net, optimizer = wrapped(net, folder, "priority" if form in ("by parameter", "dropped at once") else "fifo")
    for step in range(STEPS):
        optimizer.zero_grad()
        if form == "accumulated":
            with net.no_sync():
                tiny.loss(net, 100 + step, shoal.rank()).backward()
        getattr(net.module, "_orig_mod", net.module).without = form == "one without" and shoal.rank() == 1
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
        expect_near(values, expected)


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


def looked_at(folder):
    """Hooks on the weight of a layer by factors see its gradient: one halves it, one counts."""
    net, optimizer = wrapped(Net(), folder)
    seen = []
    net.module.wide.weight.register_hook(lambda g: g / 2)
    net.module.wide.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad is not None))
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
    return tiny.values(net.module), seen


def test_hooks_on_the_weight_see_its_gradient(pool, tmp_path):
    net = Net()
    net.wide.weight.register_hook(lambda g: g / 2)
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(MEMBERS):
            (tiny.loss(net, step, rank) / MEMBERS).backward()
        optimizer.step()
    for values, seen in pool(MEMBERS).run(looked_at, tmp_path):
        assert seen == [True] * STEPS
        expect_near(values, tiny.values(net))


def called_otherwise(_):
    """A large layer called by keyword, pickled before the step, and given a forward function of the user's own between passes."""
    net, optimizer = tiny.wrap(Net())
    wide = net.module.wide
    tiny.loss(net, 0, shoal.rank())
    seen = [torch.equal(wide(input=torch.ones(2, SHAPE[0])), F.linear(torch.ones(2, SHAPE[0]), wide.weight, wide.bias))]
    seen.append(torch.equal(pickle.loads(pickle.dumps(net.module)).wide.weight, wide.weight))
    optimizer.zero_grad()
    own = types.MethodType(lambda layer, x: torch.nn.Linear.forward(layer, x) * 0, wide)
    tiny.loss(net, 0, shoal.rank()).backward()
    optimizer.step()
    wide.forward = own
    with torch.no_grad():
        silent = net.module.last(torch.zeros(8, SHAPE[1]))
    seen.append(torch.equal(net(torch.ones(8, 6)), silent))
    F.mse_loss(net(torch.ones(8, 6)), silent).backward()
    optimizer.step()
    seen.append(wide.forward is own)
    return seen


def test_a_layer_remains_the_users(pool):
    assert pool(2).run(called_otherwise, None) == [[True] * 4] * 2


def uneven(folder):
    """Rank 0 is out of data long before the others, across the comparison of replicas after 50 steps. The way of the wide layer at the end."""
    net, optimizer = wrapped(Net(), folder)
    with net.join():
        for step in range(10 if shoal.rank() == 0 else 60):
            optimizer.zero_grad()
            tiny.loss(net, step, shoal.rank()).backward()
            optimizer.step()
    return "factors" in net.plan, tiny.values(net)


def test_who_is_out_of_data_has_not_parted(pool, tmp_path):
    results = pool(MEMBERS).run(uneven, tmp_path)
    assert [by_factors for by_factors, _ in results] == [True] * MEMBERS
    assert all(tiny.equal(values, results[0][1]) for _, values in results)


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


PARTED = "import pathlib, test_factors; test_factors.parted(pathlib.Path.cwd())"


def test_the_report_says_that_replicas_have_parted(tmp_path):
    process = launch(MEMBERS, [sys.executable, "-c", PARTED], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told = [note for note in notes_of_run(tmp_path) if "multiply" in note]
    assert len(told) == 1
    assert re.fullmatch(r"ranks 0, 1, 2, \d+\.\d\d s: members multiply to other bits: what went by factors goes as whole gradients from step \d+ on, "
                        "from the values of rank 0", told[0])
