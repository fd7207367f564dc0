"""Compiled models whose steps are taken by parameter: each compiled graph waits for its own parameters, compiles once, and sees no others' step.

Method: a member whose means are always said to be late; a compiler that runs graphs as they are and looks, whenever one runs, which
parameters wait. Oracle: one process that runs all members' micro-batches uncompiled, bit for bit.
"""

import pytest
import torch
from torch import nn

import shoal
import tiny
from against_one import MEMBERS
from test_steps import late, one_loss, parameters, expected_of

STEPS = 12
BLOCKS = 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x):
        return x + torch.tanh(self.inner(x))


class Blocks(nn.Module):
    """An uncompiled layer, blocks, an uncompiled layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.backwards = False  # which block is first

    def forward(self, x):
        x = self.first(x)
        for block in reversed(self.blocks) if self.backwards else self.blocks:
            x = block(x)
        return self.last(x)


class Broken(Blocks):
    """The compiler cannot look past what is between its blocks."""

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        x = self.blocks[0](x)
        torch._dynamo.graph_break()
        x = self.blocks[1](x)
        torch._dynamo.graph_break()
        return self.last(self.blocks[2](x))


class Watched:
    """A backend of the compiler that runs the graph as it is."""

    def __init__(self):
        self.compiled = 0
        self.net = None
        self.waiting = []  # whenever a graph ran in the latest pass: how many parameters waited

    def __call__(self, graph, inputs):
        self.compiled += 1

        def run(*arguments):
            if self.net is not None:
                ours = [a for a in arguments if isinstance(a, nn.Parameter)]
                assert ours and not any(hasattr(type(p), "_shoal_waits") for p in ours)
                self.waiting.append(len(self.net._steps._hyper))
            return graph(*arguments)

        return run


# What is trained, how it is called, its optimizer.

def whole_before(backend):
    return late_of(torch.compile(Broken(), backend=backend))


def whole_after(backend):
    net, _, optimizer = late_of(Broken())
    return net, torch.compile(net, backend=backend), optimizer


def in_place(backend):
    net = Blocks()
    for block in net.blocks:
        block.compile(backend=backend)
    return late_of(net)


def each_wrapped(backend):
    net = Blocks()
    net.blocks = nn.ModuleList(torch.compile(block, backend=backend) for block in net.blocks)
    return late_of(net)


def late_of(inner):
    net, optimizer = late(inner, tiny.sgd(inner))
    return net, net, optimizer


MAKERS = [whole_before, whole_after, in_place, each_wrapped]


def run(make, between):
    torch._dynamo.reset()
    backend = Watched()
    net, call, optimizer = make(backend)
    compiled = []
    for step in range(STEPS):
        backend.net = net
        backend.waiting.clear()
        between(net.module, step)
        optimizer.zero_grad()
        tiny.loss(call, step, shoal.rank()).backward()
        optimizer.step()
        compiled.append(backend.compiled)
    net.flush()
    return parameters(net.module), list(backend.waiting), compiled


def plainly(net, step):
    pass


def expected(between=plainly):
    net = Blocks()
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        between(net, step)
        tiny.oracle_step(net, optimizer, [lambda n, r=r: one_loss(n, step, r) for r in range(MEMBERS)])
    return parameters(net)


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_each_graph_waits_for_its_own_parameters(pool, make):
    for values, waiting, compiled in pool(MEMBERS).run(run, make, plainly):
        assert tiny.equal(values, expected())
        assert compiled[2] == compiled[-1] > 0  # the first two passes are watched
        assert len(waiting) >= BLOCKS and waiting == sorted(set(waiting), reverse=True)  # fewer from graph to graph
        assert waiting[0] > 0


def turns(net, step):
    net.backwards = step % 2 == 1


def test_a_model_that_runs_other_graphs_from_step_to_step_is_exact_and_soon_waits_for_all(pool):
    for values, waiting, compiled in pool(MEMBERS).run(run, in_place, turns):
        assert tiny.equal(values, expected(turns))
        assert waiting == [0] * BLOCKS
        assert compiled[-1] <= 6


def told_of_turns(_=None):
    """What the report says of a model that runs other graphs each time."""
    notes, note = [], shoal._C.note
    shoal._C.note = notes.append
    try:
        run(in_place, turns)
    finally:
        shoal._C.note = note
    return notes


def test_that_it_awaits_all_means_is_told_once(pool):
    told = ["barrier: all means are awaited before the model runs because it runs other compiled graphs from step to step"]
    assert pool(MEMBERS).run(told_of_turns) == [told] * MEMBERS


def evaluated(_=None):
    """Between step() and the next pass the compiled model is evaluated, while parameters wait; and how often it was compiled."""
    torch._dynamo.reset()
    backend = Watched()
    net, _, optimizer = in_place(backend)
    compiled = []
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        with torch.no_grad():
            net(torch.ones(2, 6))
        compiled.append(backend.compiled)
    return parameters(net.module), compiled


def test_an_evaluation_sees_the_step_taken_and_compiles_once(pool):
    for values, compiled in pool(MEMBERS).run(evaluated):
        assert tiny.equal(values, expected())
        assert compiled[3] == compiled[-1]
