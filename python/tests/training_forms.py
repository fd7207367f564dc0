"""Ways to write a training loop. Each runs the same on a member of Shoal, of DDP, and in the one process that stands for all:

    form(wrap, backward) -> what it ends with, a list of tensors

`wrap(model, optimizer)` makes it parallel. `backward(model, step, finish)` leaves the mean gradients of `finish(loss)`.
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import tiny

MEMBERS = 2


def loop(net, optimizer, backward, steps=3):
    for step in range(steps):
        optimizer.zero_grad()
        backward(net, step)
        optimizer.step()
    return tiny.values(net)


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = tiny.model(5)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return self.body(x)


def autocast(wrap, backward):
    return loop(*wrap(Autocast()), backward)


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.body, self.reentrant = tiny.model(5), reentrant

    def forward(self, x):
        return self.body[4](checkpoint(self.body[:4], x.requires_grad_(), use_reentrant=self.reentrant))


def checkpointed(wrap, backward):
    return loop(*wrap(Checkpointed(False)), backward)


def checkpointed_reentrant(wrap, backward):
    return loop(*wrap(Checkpointed(True)), backward)


def compiled_before(wrap, backward):
    return loop(*wrap(torch.compile(tiny.model(), backend="aot_eager")), backward)


def compiled_after(wrap, backward):
    net, optimizer = wrap(tiny.model())
    return loop(torch.compile(net, backend="aot_eager"), optimizer, backward)


def compiled_by_inductor(wrap, backward):
    """The compiler's own default; slow."""
    return loop(*wrap(torch.compile(tiny.model())), backward)


def compiled_in_place(wrap, backward):
    net = tiny.model()
    net.compile(backend="aot_eager")
    return loop(*wrap(net), backward)


def scaled(wrap, backward):
    """Member 1's loss of step 1 is infinite: nobody takes that step, everybody's scale is halved."""
    net, optimizer = wrap(tiny.model())
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=2)
    scales, skipped = [], []
    for step in range(5):
        before = tiny.values(net)
        optimizer.zero_grad()
        backward(net, step, lambda loss, rank: scaler.scale(loss * (float("inf") if (rank, step) == (1, 1) else 1)))
        if step == 3:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.05)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        skipped.append(tiny.equal(before, tiny.values(net)))
    assert skipped == [False, True, False, False, False] and scales == [256, 128, 128, 256, 256], (skipped, scales)
    return tiny.values(net)


def lbfgs(wrap, backward):
    """The search goes by the loss, too: every member must give the same one."""
    net = tiny.model()
    net, optimizer = wrap(net, torch.optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe"))
    closures = 0

    def closure():
        nonlocal closures
        closures += 1
        optimizer.zero_grad()
        backward(net, 0)
        with torch.no_grad():
            return sum(tiny.loss(net, 0, rank) for rank in range(MEMBERS)) / MEMBERS

    for _ in range(2):
        optimizer.step(closure)
    assert closures > 6
    return tiny.values(net)


def clipped(wrap, backward):
    net, optimizer = wrap(tiny.model())
    for step in range(3):
        optimizer.zero_grad()
        backward(net, step)
        assert nn.utils.clip_grad_norm_(net.parameters(), 0.05) > 0.05
        optimizer.step()
    return tiny.values(net)


FORMS = ["autocast", "checkpointed", "checkpointed_reentrant", "compiled_before", "compiled_after", "compiled_in_place", "scaled", "lbfgs",
         "clipped"]


# --- how a member does it, and the one process

def own_backward(rank):
    def backward(net, step, finish=lambda loss, rank: loss):
        finish(tiny.loss(net, step, rank), rank).backward()

    return backward


def all_backwards(net, step, finish=lambda loss, rank: loss):
    parts = [tiny.gradients(net, lambda n, r=r: finish(tiny.loss(n, step, r), r).backward()) for r in range(MEMBERS)]
    for parameter, mean in zip(net.parameters(), tiny.mean_in_rank_order(parts)):
        parameter.grad = mean


def unwrapped(net, optimizer=None):
    return net, optimizer or tiny.sgd(net)
