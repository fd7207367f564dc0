"""What scripts put around forward passes and steps: passes past the wrapper, hooks of the optimizer, buffers that are reassigned, a plan that is no longer the
checkpoint's. Members end like one process that does the same."""

import functools
import json

import pytest
import torch
from torch import nn

import shoal
import tiny
from against_one import MEMBERS, RANKS
from test_steps import STEPS, late, parameters, trained


def clips(net, step, rank):
    """Past the wrapper, and what is clipped between backward() and step() is the mean."""
    tiny.loss(getattr(net, "module", net), step, rank).backward()
    if rank == shoal.rank():
        nn.utils.clip_grad_norm_(getattr(net, "module", net).parameters(), 0.1)


def clipped(_=None):
    return parameters(trained(tiny.model(), clips))


def test_a_gradient_read_after_a_pass_past_the_wrapper_is_the_mean(pool):
    results = pool(MEMBERS).run(clipped)
    net = tiny.model()
    optimizer = tiny.sgd(net)
    clip = optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(net.parameters(), 0.1) and None)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
    clip.remove()
    for values in results:
        assert tiny.equal(values, parameters(net))


def with_hooks(which, early):
    """The script's own hooks around the optimizer's step: clipping before it, growing behind it."""
    inner = tiny.model()
    optimizer = tiny.sgd(inner)
    add = {"pre": lambda: optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(inner.parameters(), 0.1) and None),
           "post": lambda: optimizer.register_step_post_hook(lambda *_: [p.data.mul_(1.01) for p in inner.parameters()] and None)}[which]
    if early:
        add()
    net, optimizer = late(inner, optimizer)
    if not early:
        add()
    elif which == "pre":
        net._steps._core.here = range(len(list(inner.parameters())))  # whoever reads a gradient has its mean
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    return parameters(net)


@pytest.mark.parametrize("which", ["pre", "post"])
@pytest.mark.parametrize("early", [True, False])
def test_hooks_of_the_script_see_means_and_parameters_that_are_stepped(pool, which, early):
    net = tiny.model()
    optimizer = tiny.sgd(net)
    if which == "pre":
        optimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(net.parameters(), 0.1) and None)
    else:
        optimizer.register_step_post_hook(lambda *_: [p.data.mul_(1.01) for p in net.parameters()] and None)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
    for values in pool(MEMBERS).run(with_hooks, which, early):
        assert tiny.equal(values, parameters(net))


class Passing(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


class Shrinking(torch.optim.SGD):
    """Shrinks in step() what super().step() has just stepped: the parameters that its groups hold then."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.mul_(0.99)


class Borrowing(torch.optim.Optimizer):
    """Its step is that of a class which is none of its bases."""

    _init_group = torch.optim.SGD._init_group

    def __init__(self, parameters, **options):
        super().__init__(parameters, torch.optim.SGD([torch.zeros(1)], **options).defaults)

    def step(self, closure=None):
        torch.optim.SGD.step(self, closure)


def timed(kind):
    """The class, its step() in a wrapper that has come after PyTorch's, as torch.compile puts one around SparseAdam's."""
    step = kind.step

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        return step(self, *args, **kwargs)

    return type("Timed", (kind,), {"step": wrapper})


def of_kind(kind, parameters):
    """PyTorch hooks SGD's step(), of which somebody has made one: all hooks run a second time inside of a step that calls it."""
    torch.optim.SGD([torch.zeros(1)], lr=0.1)
    made = timed(torch.optim.SGD) if kind == "Timed" else globals().get(kind, torch.optim.SGD)
    return made(parameters, lr=0.1, momentum=0.9)


def in_a_class_of_ones_own(kind, plan):
    inner = tiny.model()
    net, optimizer = tiny.wrap(inner, of_kind(kind, inner.parameters()), plan=plan)
    if plan == "p3":
        net._steps._core = tiny.Late(net._core)
    waited = False
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
        waited = waited or plan == "p3" and net._steps.waiting
    net.flush()
    return parameters(net), waited


@pytest.mark.parametrize("kind", ["Passing", "Shrinking", "Borrowing", "Timed"])
def test_a_step_that_calls_another_classs_step_is_one(pool, kind):
    net = tiny.model()
    optimizer = of_kind(kind, net.parameters())
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
    for values, waited in pool(MEMBERS).run(in_a_class_of_ones_own, kind, "p3"):
        assert waited and tiny.equal(values, parameters(net))


def test_local_steps_of_any_class_are_counted_alike(pool):
    expected = pool(MEMBERS).run(in_a_class_of_ones_own, "SGD", "local:3")
    for (values, _), (theirs, _) in zip(pool(MEMBERS).run(in_a_class_of_ones_own, "Passing", "local:3"), expected):
        assert tiny.equal(values, theirs)


def ticked(kind):
    net = nn.Sequential(shoal.nn.TableEmbedding(shoal.Table(f"ticked-by-{kind}", 4, consistency="bsp", rule="sgd:0.1")), nn.Linear(4, 3))
    net, optimizer = tiny.wrap(net, of_kind(kind, net.parameters()))
    for _ in range(5):
        net(torch.tensor([1, 2])).sum().backward()
        optimizer.step()
    return net.module[0].table.clock


def test_tables_of_a_model_tick_once_a_step(pool):
    assert pool(MEMBERS).run(ticked, "SGD") == pool(MEMBERS).run(ticked, "Passing") == [5] * MEMBERS


def with_a_late_hook(kind):
    """The script's own hook comes when steps are by parameter already, and looks at what a step has changed."""
    inner = tiny.model()
    net, optimizer = late(inner, of_kind(kind, inner.parameters()))
    for step in range(STEPS):
        if step == 5:
            optimizer.register_step_post_hook(lambda *_: [p.data.mul_(1.01) for p in inner.parameters()] and None)
        tiny.step(net, optimizer, step, shoal.rank())
    return parameters(net)


@pytest.mark.parametrize("kind", ["SGD", "Passing"])
def test_a_late_hook_of_the_script_sees_whole_steps(pool, kind):
    net = tiny.model()
    optimizer = of_kind(kind, net.parameters())
    for step in range(STEPS):
        if step == 5:
            optimizer.register_step_post_hook(lambda *_: [p.data.mul_(1.01) for p in net.parameters()] and None)
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
    for values in pool(MEMBERS).run(with_a_late_hook, kind):
        assert tiny.equal(values, parameters(net))


def accumulated(_=None):
    """no_sync() inside of no_sync() does not end it."""
    def backward(net, step, rank):
        with net.no_sync():
            with net.no_sync():
                tiny.loss(net, 10 * step, rank).backward()
            tiny.loss(net, 10 * step + 1, rank).backward()
        tiny.loss(net, 10 * step + 2, rank).backward()

    return parameters(trained(tiny.model(), backward))


def test_no_sync_inside_of_no_sync(pool):
    def backward(net, step, rank):
        for each in range(3):
            tiny.loss(net, 10 * step + each, rank).backward()

    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: backward(n, step, r) for r in RANKS])
    for values in pool(MEMBERS).run(accumulated):
        assert tiny.equal(values, parameters(net))


class Averaging(nn.Module):
    """Its forward pass puts another tensor in the place of its buffer."""

    def __init__(self, grows=False):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.grows = nn.Linear(6, 3), grows
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        self.mean = torch.cat([self.mean, self.mean]) if self.grows else 0.9 * self.mean + 0.1 * x.mean(0)
        return self.first(x - (0 if self.grows else self.mean))


def reassigning(plan):
    net, optimizer = tiny.wrap(Averaging(), plan=plan)
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    return net.mean.clone()


def test_a_buffer_that_is_reassigned_follows_rank_0(pool):
    alone = Averaging()
    optimizer = tiny.sgd(alone)
    for step in range(STEPS):
        tiny.step(alone, optimizer, step, 0)
    for mean in pool(MEMBERS).run(reassigning, "wfbp"):
        assert torch.allclose(mean, alone.mean)


class Sharing(nn.Module):
    """Two parts with one buffer, in whose place the first puts another."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Averaging(), nn.Module()
        self.second.register_buffer("mean", self.first.mean)

    def forward(self, x):
        return self.first(x) + 0 * self.second.mean.sum()


def sharing(_=None):
    net, optimizer = tiny.wrap(Sharing(), plan="wfbp")
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    return net.first.mean.clone(), net.second.mean.clone()


def test_a_shared_buffer_is_followed_where_it_is_reassigned(pool):
    alone = Sharing()
    optimizer = tiny.sgd(alone)
    for step in range(STEPS):
        tiny.step(alone, optimizer, step, 0)
    for first, second in pool(MEMBERS).run(sharing):
        assert torch.allclose(first, alone.first.mean) and torch.equal(second, alone.second.mean)


def growing(_=None):
    """A cache that becomes longer, on each member in its own time."""
    net, optimizer = tiny.wrap(Averaging(grows=True), plan="wfbp")
    for step in range(shoal.rank(), STEPS):
        with torch.no_grad():
            net(torch.ones(1, 6))
        tiny.step(net, optimizer, step, shoal.rank()) if step >= MEMBERS - 1 else None
    return len(net.mean)


def test_a_buffer_that_becomes_longer_is_each_members_own(pool):
    lengths = pool(MEMBERS).run(growing)
    assert len(set(lengths)) == MEMBERS


def refused(_=None):
    net, optimizer = tiny.wrap(Averaging(), plan="local:4")
    try:
        tiny.step(net, optimizer, 0, shoal.rank())
    except shoal.Error as error:
        net.release()
        return str(error)


def test_a_buffer_that_cannot_be_averaged_is_refused_by_name(pool):
    for told in pool(MEMBERS).run(refused):
        assert told.startswith("buffer mean: the module has put another tensor in its place, and it is to be averaged")


def scripted(_=None):
    inner = nn.Sequential(nn.Linear(6, 5), torch.jit.script(nn.BatchNorm1d(5)), nn.Linear(5, 3))
    net, optimizer = tiny.wrap(inner, plan="wfbp")
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    return tiny.values(net)


def test_buffers_of_a_scripted_part_are_followed(pool):
    first, *others = pool(MEMBERS).run(scripted)
    assert all(tiny.equal(first, other) for other in others)


def resumed(plan):
    """By another plan than the checkpoint's."""
    net, optimizer = tiny.wrap(tiny.model(), plan="direct")
    net._core.continue_from(5, plan)
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    return {unit["way"] for unit in json.loads(net.plan)["units"]}


def planned(plan):
    net, optimizer = tiny.wrap(tiny.model(), plan=plan)
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    return net.plan


def test_who_asks_for_another_plan_than_the_checkpoints_gets_it(pool):
    plan = pool(MEMBERS).run(planned, "ring")[0]
    assert pool(MEMBERS).run(resumed, plan) == [{"direct"}] * MEMBERS
