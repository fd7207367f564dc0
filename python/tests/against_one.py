"""A step of every member against the same step of one process that runs all members' micro-batches."""

import torch
from torch import nn

import shoal
import tiny

MEMBERS = 2
RANKS = range(MEMBERS)


def step_and_values(net, optimizer, backward):
    optimizer.zero_grad()
    backward()
    optimizer.step()
    return tiny.values(net)


def check(results, net, optimizer, backwards, steps=1):
    """All members end like one process; backwards[r](net, step) is what member r ran."""
    for step in range(steps):
        tiny.oracle_step(net, optimizer, [lambda n, b=b: b(n, step) for b in backwards])
    for values in results:
        assert tiny.equal(values, tiny.values(net))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.inner = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.inner(torch.tanh(self.inner(x))))


def one_step(make, n=8):
    net, optimizer = tiny.wrap(make())
    return step_and_values(net, optimizer, lambda: tiny.loss(net, 0, shoal.rank(), n).backward())
