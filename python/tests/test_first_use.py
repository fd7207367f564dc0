"""Who goes first is who is used first: priorities come from passes that were watched, whatever parameters are called and however they are shared."""

import json

import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from against_one import MEMBERS, RANKS
from test_steps import STEPS, expected_of, late, one_loss, parameters


WIDTH = 256


class Backwards(nn.Module):
    """Registered last to first. The weight that is used first is used once more at the end; `deep` may be a script, which takes it past Python."""

    def __init__(self, scripted: bool = False):
        super().__init__()
        torch.manual_seed(9)
        self.last, self.deep, self.first = nn.Linear(WIDTH, 3, bias=False), nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        if scripted:
            self.deep = torch.jit.script(self.deep)

    def forward(self, x):
        y = self.deep(torch.tanh(self.first(F.pad(x, (0, WIDTH - x.shape[1])))))
        return self.last(F.linear(torch.tanh(y), self.first.weight))


def planned(_=None):
    net, optimizer = tiny.wrap(Backwards(), plan="p3,first*=direct,deep*=ring,last*=halving_doubling")  # tensors of several ways are not packed together
    for step in range(STEPS):
        tiny.step(net, optimizer, step, shoal.rank())
    names = [name for name, _ in net.module.named_parameters()]
    units = sorted(json.loads(net.plan)["units"], key=lambda unit: unit["priority"])
    return [names[i] for unit in units for i in unit["tensors"]]


def test_what_is_used_first_goes_first_also_where_it_is_used_again(pool):
    for order in pool(MEMBERS).run(planned):
        assert order == ["first.weight", "deep.weight", "last.weight"]


def scripted(_=None):
    notes, note = [], shoal._C.note
    shoal._C.note, shoal.pending._told = lambda line: notes.append(line), set()
    try:
        inner = Backwards(scripted=True)
        net, optimizer = late(inner, tiny.sgd(inner))
        waited = False
        for step in range(STEPS):
            optimizer.zero_grad()
            one_loss(net, step, shoal.rank())
            optimizer.step()
            waited = waited or net._steps.waiting
        net.flush()
    finally:
        shoal._C.note = note
    return parameters(net), notes, waited


def test_what_is_used_past_pythons_functions_is_stepped_at_once_and_said(pool):
    for values, notes, waited in pool(MEMBERS).run(scripted):
        assert tiny.equal(values, expected_of(Backwards(), one_loss))
        assert notes == ["barrier: all means are awaited in step() because some parameter is used by code that takes it past PyTorch's Python functions"]
        assert not waited


def by_two_optimizers():
    """A rule and a rate of its own for the last layer."""
    net = tiny.model()
    return net, torch.optim.SGD(net[:4].parameters(), lr=0.1, momentum=0.9), torch.optim.Adam(net[4].parameters(), lr=0.01)


def stepped_by_two(_=None):
    net, main, head = by_two_optimizers()
    net, main = tiny.wrap(net, main, plan="p3")
    for step in range(STEPS):
        main.zero_grad()
        head.zero_grad()
        one_loss(net, step, shoal.rank())
        main.step()
        head.step()
    return parameters(net)


def test_a_second_optimizer_steps_by_the_same_means(pool):
    net, main, head = by_two_optimizers()
    for step in range(STEPS):
        means = tiny.mean_in_rank_order([tiny.gradients(net, lambda n, r=r: one_loss(n, step, r)) for r in RANKS])
        for parameter, mean in zip(net.parameters(), means):
            parameter.grad = mean
        main.step()
        head.step()
    for values in pool(MEMBERS).run(stepped_by_two):
        assert tiny.equal(values, parameters(net))
