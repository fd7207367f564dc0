"""Who else looks at gradients and parameters while means are on their way."""

import torch
from torch import nn

import shoal
import tiny
from against_one import MEMBERS, RANKS
from test_steps import STEPS, expected_of, late, one_loss, parameters, trained


def held(_=None):
    """Gradients that were kept from step to step are what they were."""
    net, optimizer = tiny.wrap(tiny.model())
    kept = []
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        gradient = next(net.parameters()).grad
        kept.append((gradient, gradient.clone()))
        optimizer.step()
    return all(torch.equal(gradient, copied) for gradient, copied in kept)


def test_a_gradient_that_somebody_keeps_does_not_change(pool):
    assert pool(MEMBERS).run(held) == [True] * MEMBERS


def looks_past(_=None):
    """Views of the parameters from before the loop: after each step they show it taken."""
    net, optimizer = late(tiny.model(), None)
    views = [p.detach() for p in net.parameters()][:3]
    seen, waited = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        one_loss(net, step, shoal.rank())
        optimizer.step()
        waited.append(len(net._steps._hyper))
        seen.append([view.clone() for view in views])
    return seen, waited, parameters(net)


def test_a_parameter_in_whose_memory_something_else_looks_does_not_wait(pool):
    net = tiny.model()
    optimizer, expected_views = tiny.sgd(net), []
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: one_loss(n, step, r) for r in RANKS])
        expected_views.append(parameters(net)[:3])
    for seen, waited, values in pool(MEMBERS).run(looks_past):
        assert all(tiny.equal(ours, theirs) for ours, theirs in zip(seen, expected_views))
        assert waited == [0] * 3 + [3] * (STEPS - 3)  # three of six
        assert tiny.equal(values, parameters(net))


def steps_with_none(_=None):
    net, optimizer = late(tiny.model(), None)
    waited = []
    for step in range(STEPS):
        optimizer.zero_grad()
        one_loss(net, step, shoal.rank())
        optimizer.step(None) if step % 2 else optimizer.step(closure=None)
        waited.append(net._steps.waiting)
    return waited


def test_no_closure_is_none(pool):
    assert pool(MEMBERS).run(steps_with_none) == [[False] * 3 + [True] * (STEPS - 3)] * MEMBERS


class Branches(nn.Module):
    """Its second branch is used in every other step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second, self.often = nn.Linear(6, 3), nn.Linear(6, 3), True

    def forward(self, x):
        return self.first(x) + (self.second(x) if self.often else 0)


def now_and_then(net, step, rank):
    getattr(net, "module", net).often = step % 2 == 0
    one_loss(net, step, rank)


def branches(_=None):
    return parameters(trained(Branches(), now_and_then))


def test_a_parameter_that_the_next_pass_does_not_use_is_stepped_before_its_backward(pool):
    for values in pool(MEMBERS).run(branches):
        assert tiny.equal(values, expected_of(Branches(), now_and_then))
