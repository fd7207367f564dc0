"""Tiny models, data that every process makes alike, and the oracle: one process that runs all members' micro-batches."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

import shoal


def model(seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 17), nn.Tanh(), nn.Linear(17, 13), nn.Tanh(), nn.Linear(13, 3))


class Normalised(nn.Module):
    """With buffers: batch normalisation between two layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.first, self.norm, self.last = nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)

    def forward(self, x):
        return self.last(self.norm(self.first(x)))


def data(step: int, rank: int, n: int = 8, width: int = 6):
    """The same numbers on whatever device is the default."""
    generator = torch.Generator("cpu").manual_seed(1000 * step + rank)
    x, y = torch.randn(n, width, generator=generator, device="cpu"), torch.randint(0, 3, (n,), generator=generator, device="cpu")
    return x.to(torch.get_default_device()), y.to(torch.get_default_device())


def loss(net, step: int, rank: int, n: int = 8):
    x, y = data(step, rank, n)
    return F.cross_entropy(net(x), y)


def step(net, optimizer, number: int, rank: int) -> None:
    optimizer.zero_grad()
    loss(net, number, rank).backward()
    optimizer.step()


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


def wrap(net, optimizer=None, **options):
    return shoal.data_parallel(net, optimizer or sgd(net), **options)


def behind_ours(optimizer, hook) -> None:
    """Before the optimizer's own step, behind Shoal's hooks, which take it for one of theirs."""
    hook.__module__ = "shoal.tests"
    optimizer.register_step_pre_hook(hook)


def values(net) -> list[torch.Tensor]:
    return [t.detach().clone() for t in net.state_dict().values()]


def equal(a, b) -> bool:
    """Bit for bit."""
    return len(a) == len(b) and all(x.dtype == y.dtype and torch.equal(x, y) for x, y in zip(a, b))


def gradients(net, backward):
    """The gradients that `backward(net)` alone leaves."""
    alone = copy.deepcopy(net)
    alone.zero_grad()
    backward(alone)
    return [p.grad for p in alone.parameters()]


def mean_in_rank_order(parts, weights=None):
    """((g0 + g1) + g2) ... divided once; None where nobody has one. Unequal weights multiply before the sum."""
    weights = weights or [1] * len(parts)
    unequal = len(set(weights)) > 1
    means = []
    for of_ranks in zip(*parts):
        if all(g is None for g in of_ranks):
            means.append(None)
            continue
        some = next(g for g in of_ranks if g is not None)
        terms = [(torch.zeros_like(some) if g is None else g) for g in of_ranks]
        if unequal:
            terms = [t * w for t, w in zip(terms, weights)]
        total = terms[0].clone()
        for term in terms[1:]:
            total += term
        means.append(total / (sum(weights) if unequal else len(parts)))
    return means


def oracle_step(net, optimizer, backwards, weights=None) -> None:
    """One step of one process that runs the micro-batches of all ranks: backwards[r](net)."""
    parts = [gradients(net, backward) for backward in backwards]
    optimizer.zero_grad()
    for parameter, mean in zip(net.parameters(), mean_in_rank_order(parts, weights)):
        parameter.grad = mean
    optimizer.step()


class Late:
    """The core of a model, whose means have never arrived until somebody waits for them."""

    def __init__(self, core):
        self._core = core
        self.here = []  # but for these

    def __getattr__(self, name):
        return getattr(self._core, name)

    def arrived(self):
        return [number for number in self._core.arrived() if number in self.here]
