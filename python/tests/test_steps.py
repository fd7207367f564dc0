"""Steps by parameter end like whole steps, bit for bit, whatever is done between step() and the next forward pass.

Method: a member whose means are always said to be late, so that every parameter waits until it is used; oracle: one process that runs
all members' micro-batches and steps as a whole.
"""

import copy
import io
import math
import pickle
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import shoal
import tiny
from against_one import MEMBERS, RANKS, check

STEPS = 7  # the plan is made after three


def late(net, optimizer):
    wrapped, optimizer = tiny.wrap(net, optimizer, plan="p3")
    wrapped._steps._core = tiny.Late(wrapped._core)
    return wrapped, optimizer


class Attention(nn.Module):
    """What uses parameters without calling the module that has them: attention's last projection, a tied weight, a lookup by name."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.first = nn.Linear(6, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.recurrent = nn.LSTM(8, 8, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        y = torch.tanh(self.first(x)).unsqueeze(1)
        y = self.norm(y + self.attention(y, y, y, need_weights=False)[0])
        y = y + checkpoint(lambda z: self.recurrent(z)[0], y, use_reentrant=False)
        y = F.linear(y.squeeze(1), self.first.weight.t(), None)
        return torch.func.functional_call(self.last, dict(self.last.named_parameters()), F.linear(y, self.first.weight))


NETS = {"plain": tiny.model, "normalised": tiny.Normalised, "attention": Attention}


def groups(net):
    """Weight decay for weights alone, and a rate that falls."""
    parameters = list(net.parameters())
    return [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1}, {"params": [p for p in parameters if p.dim() <= 1], "lr": 0.02}]


OPTIMIZERS = {
    "sgd": tiny.sgd,
    "adam": lambda net: torch.optim.Adam(net.parameters(), lr=1e-2),
    "fused": lambda net: torch.optim.Adam(net.parameters(), lr=1e-2, fused=True),
    "adamw": lambda net: torch.optim.AdamW(groups(net), lr=1e-2, amsgrad=True),
    "foreach": lambda net: torch.optim.AdamW(net.parameters(), lr=1e-2, foreach=True),
    "adafactor": lambda net: torch.optim.Adafactor(net.parameters(), lr=1e-2),
    "rmsprop": lambda net: torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9),
    "adagrad": lambda net: torch.optim.Adagrad(net.parameters(), lr=1e-2, lr_decay=0.1),
    "adadelta": lambda net: torch.optim.Adadelta(net.parameters(), lr=0.5),
    "adamax": lambda net: torch.optim.Adamax(net.parameters(), lr=1e-2),
    "nadam": lambda net: torch.optim.NAdam(net.parameters(), lr=1e-2),
    "radam": lambda net: torch.optim.RAdam(net.parameters(), lr=1e-2),
    "asgd": lambda net: torch.optim.ASGD(net.parameters(), lr=1e-2, t0=2),
    "rprop": lambda net: torch.optim.Rprop(net.parameters(), lr=1e-2),
    "muon": lambda net: torch.optim.Muon([p for p in net.parameters() if p.dim() == 2], lr=1e-2),  # biases stay as they are
    "tensor_rate": lambda net: torch.optim.Adam(net.parameters(), lr=torch.tensor(1e-2), foreach=False),
}


class OneByOne(torch.optim.Optimizer):
    """Nobody knows this one: its rule treats each parameter by itself."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    age = self.state[p]["age"] = self.state[p].get("age", 0) + 1
                    p.sub_(p.grad / (p.grad.norm() + 1) * group["lr"] / math.sqrt(age))


class AllTogether(OneByOne):
    """And this one's does not."""

    @torch.no_grad()
    def step(self, closure=None):
        gradients = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["age"] = 1
                    p.sub_(p.grad / (norm + 1) * group["lr"])


def plainly(net, optimizer, step):
    pass


# --- what may happen between step() and the next forward pass: (net, optimizer, step), the same in the oracle

def schedules(net, optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * 0.9


def averages(net, optimizer, step):
    for p in net.parameters():
        p.data.mul_(1.01)


def evaluates(net, optimizer, step):
    net.eval()
    with torch.no_grad():
        net(torch.ones(2, 6))
    net.train()


def copies(net, optimizer, step):
    module = getattr(net, "module", net)
    twin = copy.deepcopy(module)
    assert all(type(p) is nn.Parameter for p in twin.parameters())
    assert tiny.equal(list(twin.parameters()), list(module.parameters()))
    torch.save(module.state_dict(), io.BytesIO())


def saves(net, optimizer, step):
    state = optimizer.state_dict()["state"]
    assert all(s["step"] == step + 1 for s in state.values() if "step" in s)
    optimizer.load_state_dict(optimizer.state_dict())


def looks_at_gradients(net, optimizer, step):
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.001)


def zeros(net, optimizer, step):
    optimizer.zero_grad(set_to_none=False)


def drops(net, optimizer, step):
    for p in net.parameters():
        p.grad = None
        assert p.grad is None  # reading it is a use; what was written stays


def describes(net, optimizer, step):
    assert sum(p.numel() for p in net.parameters() if p.requires_grad and p.dtype == torch.float32 and p.shape) > 0


def under_autocast(net, optimizer, step):
    """A look inside autocast, where an optimizer that multiplies matrices would round otherwise."""
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        net(torch.ones(2, 6))


def infers(net, optimizer, step):
    with torch.inference_mode():
        net(torch.ones(2, 6))
    optimizer.zero_grad(set_to_none=False)


def turns_state(net, optimizer, step):
    """The optimizer's state is changed in place, and forgotten once."""
    for state in optimizer.state.values():
        state["exp_avg"].mul_(0.5)
    if step == 5:
        optimizer.state.clear()


def copies_optimizer(net, optimizer, step):
    twin = copy.deepcopy(optimizer)
    assert type(twin) is torch.optim.Adam
    for ours, theirs in zip(optimizer.state.values(), twin.state.values()):
        assert torch.equal(ours["exp_avg"], theirs["exp_avg"])
    assert type(pickle.loads(pickle.dumps(optimizer))) is torch.optim.Adam


def doubles(net, optimizer, step):
    for p in net.parameters():
        torch.add(p, p)  # twice in one call


BETWEEN = [plainly, schedules, averages, evaluates, copies, saves, looks_at_gradients, zeros, drops, describes, under_autocast, infers,
           turns_state, copies_optimizer, doubles]


def parameters(net):
    return [p.detach().clone() for p in net.parameters()]


def run(make, kind, between):
    inner = NETS[make]()
    net, optimizer = late(inner, OPTIMIZERS[kind](inner))
    waited = []
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        waited.append(net._steps.waiting)
        between(net, optimizer, step)
        if between in (plainly, schedules, describes):  # none of these uses a parameter, and dropping gradients does not either
            optimizer.zero_grad()
            net.module.zero_grad()
            assert net._steps.waiting == waited[-1]
    return parameters(net), waited


def expected(make, kind, between):
    net = NETS[make]()
    optimizer = OPTIMIZERS[kind](net)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
        between(net, optimizer, step)
    return parameters(net)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_every_optimizer_by_parameter_ends_in_the_bits_of_a_whole_step(pool, kind):
    for values, waited in pool(MEMBERS).run(run, "plain", kind, plainly):
        assert tiny.equal(values, expected("plain", kind, plainly))
        assert waited == [False] * 3 + [True] * (STEPS - 3)


@pytest.mark.parametrize("between", BETWEEN, ids=lambda f: f.__name__)
def test_what_is_done_between_step_and_forward_sees_the_step_taken(pool, between):
    kind = "adafactor" if between is under_autocast else "adam"
    for values, _ in pool(MEMBERS).run(run, "plain", kind, between):
        assert tiny.equal(values, expected("plain", kind, between))


@pytest.mark.parametrize("make", ["normalised", "attention"])
def test_parameters_wait_wherever_they_are_used(pool, make):
    for values, waited in pool(MEMBERS).run(run, make, "adam", plainly):
        assert tiny.equal(values, expected(make, "adam", plainly))
        assert waited[-1]


def trained(inner, backward, after=plainly, plan=None):
    """The wrapped model after steps by SGD: backward(net, step, rank), the step, after(net, optimizer, step). `plan`: of a run that it continues."""
    net, optimizer = late(inner, tiny.sgd(inner))
    if plan is not None:
        net._core.continue_from(5, plan)
    for step in range(STEPS):
        optimizer.zero_grad()
        backward(net, step, shoal.rank())
        optimizer.step()
        after(net, optimizer, step)
    return net


def expected_of(net, backward, after=plainly):
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: backward(n, step, r) for r in RANKS])
        after(net, optimizer, step)
    return parameters(net)


def one_loss(net, step, rank):
    tiny.loss(net, step, rank).backward()


def looks_early(_=None):
    """One gradient is read before step(): its mean is installed, the others wait."""
    def backward(net, step, rank):
        net._steps._core.here = [1]
        one_loss(net, step, rank)
        assert list(net.parameters())[1].grad is not None

    return parameters(trained(tiny.model(), backward))


def test_a_gradient_that_was_read_before_the_step_is_stepped_too(pool):
    for values in pool(MEMBERS).run(looks_early):
        assert tiny.equal(values, expected("plain", "sgd", plainly))


def steps_twice(net, optimizer, step):
    if step == 4:
        optimizer.step()


def past_the_wrapper(_=None):
    """The next backward pass comes from a forward pass of the inner module; and a step is taken twice."""
    return parameters(trained(tiny.model(), lambda net, step, rank: one_loss(net if step < 5 else net.module, step, rank), steps_twice))


def test_passes_and_steps_that_come_otherwise(pool):
    for values in pool(MEMBERS).run(past_the_wrapper):
        assert tiny.equal(values, expected_of(tiny.model(), one_loss, steps_twice))


def two_losses(net, step, rank):
    with net.no_sync() if hasattr(net, "no_sync") else nullcontext():
        one_loss(net, 10 * step, rank)
    one_loss(net, 10 * step + 1, rank)


def accumulated(_=None):
    return parameters(trained(tiny.model(), two_losses))


def test_gradient_accumulation_by_parameter(pool):
    for values in pool(MEMBERS).run(accumulated):
        assert tiny.equal(values, expected_of(tiny.model(), two_losses))


def unknown(kind):
    inner = tiny.model()
    net, optimizer = late(inner, globals()[kind](inner.parameters()))
    waited = False
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        waited = waited or net._steps.waiting
    return parameters(net), waited


@pytest.mark.parametrize("kind, by_parameter", [(OneByOne, True), (AllTogether, False)])
def test_an_unknown_optimizer_is_tried_before_its_parameters_wait(pool, kind, by_parameter):
    net = tiny.model()
    optimizer = kind(net.parameters())
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in RANKS])
    for values, waited in pool(MEMBERS).run(unknown, kind.__name__):
        assert tiny.equal(values, parameters(net))
        assert waited == by_parameter


class Broken(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        super().step(closure)
        if self.broken:
            raise ArithmeticError("on purpose")


def throws(_=None):
    """The optimizer throws in the middle of a step by parameter: its groups are whole again, and no parameter waits for ever."""
    inner = tiny.model()
    optimizer = Broken(inner.parameters(), lr=0.1)
    optimizer.broken = False
    net, optimizer = late(inner, optimizer)
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.broken = step == 5
        try:
            optimizer.step()
        except ArithmeticError:
            optimizer.broken = False
            net.flush()
    return [len(group["params"]) for group in optimizer.param_groups] == sizes, parameters(net)


def test_an_optimizer_that_throws_leaves_its_groups_whole(pool):
    results = pool(MEMBERS).run(throws)
    assert all(whole for whole, _ in results)
    assert tiny.equal(results[0][1], results[1][1])


def goes_on(plan):
    """With the plan of the run that it continues, as shoal.load() gives it: while first uses are still watched."""
    net = trained(tiny.model(), one_loss, plan=plan)
    return parameters(net), net.plan


def test_a_run_that_goes_on_from_another_waits_from_its_first_step(pool):
    (values, plan), *_ = pool(MEMBERS).run(goes_on, None)
    for others, _ in pool(MEMBERS).run(goes_on, plan):
        assert tiny.equal(others, values)
