"""Embeddings: their gradients' rows travel, sparse stays sparse, and training ends as in one process, to the last bit."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny

MEMBERS = 3
STEPS = 6  # the plan takes over after three
WORDS, WIDTH = 4000, 32


class Net(nn.Module):
    def __init__(self, sparse):
        super().__init__()
        torch.manual_seed(6)
        self.table, self.last = nn.Embedding(WORDS, WIDTH, sparse=sparse), nn.Linear(WIDTH, 3)
        self.without = False

    def forward(self, words):
        hidden = torch.ones(len(words), WIDTH) if self.without else self.table(words).sum(1)
        return self.last(torch.tanh(hidden))


class Bag(Net):
    def __init__(self, sparse):
        super().__init__(sparse)
        self.table = nn.EmbeddingBag(WORDS, WIDTH, sparse=sparse, mode="sum")

    def forward(self, words):
        return self.last(torch.tanh(self.table(words)))


class Tied(Net):
    """The table is used once more, as a matrix: its gradient is dense, however the embedding's own is."""

    def forward(self, words):
        return self.last(torch.tanh(self.table(words).sum(1))) + (self.table.weight[:3].sum(1) / 100)


NETS = {net.__name__: net for net in (Net, Bag, Tied)}
OPTIMIZERS = {"SGD": lambda net: torch.optim.SGD(net.parameters(), lr=0.1),
              "Adam": lambda net: torch.optim.Adam(net.parameters(), lr=0.01),
              "SparseAdam": lambda net: _Both(net)}


class _Both(torch.optim.SparseAdam):
    """SparseAdam for the table; the layer behind it is trained by hand, as users do with a second optimizer."""

    def __init__(self, net):
        super().__init__([net.table.weight], lr=0.01)
        self.others = [net.last.weight, net.last.bias]

    def step(self):
        super().step()
        with torch.no_grad():
            for parameter in self.others:
                parameter -= 0.1 * parameter.grad


def words(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    drawn = ((WORDS, (8 + rank, 5)), (3, (8 + rank,)))
    return [torch.randint(0, most, shape, generator=generator, device="cpu").to(torch.get_default_device()) for most, shape in drawn]


def loss(net, step, rank):
    x, y = words(step, rank)
    return F.cross_entropy(net(x), y)


def train(name, sparse, kind, form):
    net = NETS[name](sparse)
    net, optimizer = tiny.wrap(net, OPTIMIZERS[kind](net), plan="auto" if sparse else "auto,table.weight=rows")
    seen = []
    for step in range(STEPS):
        net.zero_grad()
        if form == "accumulated":
            with net.no_sync():
                loss(net, 50 + step, shoal.rank()).backward()
        net.module.without = form == "one without" and shoal.rank() == 1
        loss(net, step, shoal.rank()).backward()
        gradient = net.module.table.weight.grad
        seen.append((gradient.is_sparse, gradient.is_sparse and gradient.is_coalesced()))
        optimizer.step()
    plan = json.loads(net.plan)
    number = [tensor["name"] for tensor in plan["tensors"]].index("table.weight")
    (way,) = [unit["way"] for unit in plan["units"] if number in unit["tensors"]]
    return tiny.values(net.module), seen, way


def oracle(name, kind, form):
    """One process with a dense table, and the mean in rank order."""
    net = NETS[name](sparse=False)
    optimizer = OPTIMIZERS["SGD"](net) if kind == "SGD" else OPTIMIZERS["Adam"](net)
    for step in range(STEPS):
        def backward_of(rank):
            def backward(alone):
                if form == "accumulated":
                    loss(alone, 50 + step, rank).backward()
                alone.without = form == "one without" and rank == 1
                loss(alone, step, rank).backward()
            return backward

        tiny.oracle_step(net, optimizer, [backward_of(rank) for rank in range(MEMBERS)], [8 + rank for rank in range(MEMBERS)])
    return tiny.values(net)


@pytest.mark.parametrize("name, sparse, form", [
    ("Net", True, "plain"), ("Net", False, "plain"), ("Net", True, "accumulated"), ("Net", False, "accumulated"), ("Net", True, "one without"),
    ("Bag", True, "plain"), ("Tied", True, "plain"), ("Tied", False, "plain")])
def test_training_ends_like_one_process(pool, name, sparse, form):
    results = pool(MEMBERS).run(train, name, sparse, "SGD", form)
    expected = oracle(name, "SGD", form)
    for values, seen, way in results:
        assert tiny.equal(values, results[0][0])
        for ours, theirs in zip(values, expected):
            torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)
        assert way == "rows"
        if name != "Tied":
            assert seen == [(sparse, sparse)] * STEPS


def test_the_mean_of_rows_has_the_bits_of_the_mean_of_tables(pool):
    rows, tables = pool(MEMBERS).run(train, "Net", True, "SGD", "plain"), oracle("Net", "SGD", "plain")
    assert torch.equal(rows[0][0][0], tables[0])


def test_an_optimizer_for_sparse_gradients_sees_what_it_expects(pool):
    results = pool(MEMBERS).run(train, "Net", True, "SparseAdam", "plain")
    for values, seen, _ in results:
        assert seen == [(True, True)] * STEPS and tiny.equal(values, results[0][0])


def elsewhere(_):
    """A sparse gradient of a parameter that no embedding module owns."""
    weight = nn.Parameter(torch.zeros(10, 4))

    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = weight

        def forward(self, x):
            return F.embedding(x, self.weight, sparse=True)

    net = Functional()
    net, optimizer = tiny.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1))
    try:
        net(torch.tensor([1, 2])).sum().backward()
        optimizer.step()
    except shoal.Error as error:
        return error.code, str(error)


def test_sparse_gradients_that_nobody_announced_are_refused_by_name(pool):
    for code, line in pool(2).run(elsewhere, 0):
        assert code == "unsupported" and "weight" in line and "torch.nn.Embedding(sparse=True)" in line
