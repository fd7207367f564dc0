"""Local steps of members, and one process that plays all of them: the oracle, by the words of shoal/nn/local_rounds.h."""

import json

import torch
from torch import nn

import shoal
import tiny


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=0.01)


def sizes(rank, step):
    """Samples of a member's batch, another number each time."""
    return 4 + (3 * rank + step) % 5


def take_step(net, optimizer, step, rank, n=None):
    optimizer.zero_grad()
    tiny.loss(net, step, rank, n or sizes(rank, step)).backward()
    optimizer.step()


def averaged(net):
    return [*net.parameters(), *(b for b in net.buffers() if b.is_floating_point())]


class Players:
    """One process that plays all members."""

    def __init__(self, plan, steps_by_rank, make, inner, batch=sizes):
        self.steps, self.batch = steps_by_rank, batch
        policy, *arguments = plan["choice"].split(",")[0].split(":")
        rounds, fragments, rate, momentum = [*map(float, arguments), *[1, 0.7, 0.9][len(arguments) - 1:]]
        if policy == "local":
            fragments, rate, momentum = 1, 1.0, 0.0
        self.turns = [[t for unit in plan["units"] if unit.get("turn", 0) == turn for t in unit["tensors"]] for turn in range(int(fragments))]
        self.turns = [turn for turn in self.turns if turn]
        self.rounds, self.momentum = int(rounds), momentum
        self.nets = [make() for _ in steps_by_rank]
        self.optimizers = [inner(net) for net in self.nets]
        self.taken, self.since = [0] * len(self.nets), [[0] * len(self.turns) for _ in self.nets]
        self.old = [nn.Parameter(t.detach().clone()) for t in averaged(self.nets[0])]
        of_parameters = len(list(self.nets[0].parameters()))
        self.outer = [torch.optim.SGD([t], lr=rate, momentum=momentum, nesterov=momentum > 0) if i < of_parameters else
                      torch.optim.SGD([t], lr=1.0) for i, t in enumerate(self.old)]
        self.started, self.flight = 0, None

    def run(self):
        for step in range(1, max(self.steps) + 1):
            self.step_all(step)
            if step * len(self.turns) // self.rounds > (step - 1) * len(self.turns) // self.rounds:
                self.land()
                self.start()
                if len(self.turns) == 1:
                    self.land()
        return self

    def end(self):
        self.land()
        for _ in self.turns:
            self.start()
            self.land()
        return self

    def step_all(self, step):
        for rank, (net, optimizer) in enumerate(zip(self.nets, self.optimizers)):
            if step <= self.steps[rank]:
                n = self.batch(rank, step - 1)
                take_step(net, optimizer, step - 1, rank, n)
                self.since[rank] = [samples + n for samples in self.since[rank]]

    def start(self):
        turn = self.started % len(self.turns)
        self.started += 1
        weights = [samples[turn] for samples in self.since]
        for samples in self.since:
            samples[turn] = 0
        own = [[averaged(net)[t].detach().clone() for t in self.turns[turn]] for net in self.nets]
        parts = [[self.old[t].detach() - value for t, value in zip(self.turns[turn], values)]
                 for values, weight in zip(own, weights) if weight > 0]
        means = tiny.mean_in_rank_order(parts, [w for w in weights if w > 0]) if parts else None
        self.flight = turn, means, own

    def land(self):
        if self.flight is None:
            return
        (turn, means, own), self.flight = self.flight, None
        for i, t in enumerate(self.turns[turn]):
            if means is not None:
                self.old[t].grad = means[i].clone()
                self.outer[t].step()
            with torch.no_grad():
                for net, values in zip(self.nets, own):
                    value = averaged(net)[t]
                    value.copy_(self.old[t] + (value - values[i]))


def trained(plan, steps, make=tiny.model, inner=tiny.sgd):
    """Values and plan: before the end, after it."""
    net = make()
    net, optimizer = shoal.data_parallel(net, inner(net), plan)
    for step in range(steps):
        take_step(net, optimizer, step, shoal.rank())
    before = [t.detach().clone() for t in averaged(net)]
    net.flush()
    return before, [t.detach().clone() for t in averaged(net)], json.loads(net.plan)


def detached(tensors):
    return [t.detach() for t in tensors]


class Wide(nn.Sequential):
    def __init__(self, seed=1, width=160):
        torch.manual_seed(seed)
        super().__init__(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 3))
