"""Whether an optimizer's rule treats each parameter by itself, so that parameters may be stepped at different times.

PyTorch's own are known. Any other is tried once: a twin steps its parameters one after another beside a whole step, and both must end
in the same bits.
"""

import copy

import torch

from . import random_numbers
from .around_steps import rule, rule_alone

_KNOWN = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "ASGD", "Rprop", "Adafactor", "Muon")
_BY_ELEMENT = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "ASGD", "Rprop")


def treats_each_element(optimizer) -> bool:
    """Its rule is known to treat each element of a parameter by itself, so that different members may step different rows of one."""
    return rule(type(optimizer)) in {rule(getattr(torch.optim, name)) for name in _BY_ELEMENT}


class Rule:
    def __init__(self, optimizer):
        known = {rule(kind) for name in _KNOWN if (kind := getattr(torch.optim, name, None))}
        self._optimizer = optimizer
        self.holds = True if rule(type(optimizer)) in known else None  # None: not known yet
        self._steps = 0
        self._twin = None

    def watch(self, matters: bool) -> None:
        """Before a whole step, with every .grad in place; compare() follows it. The first step only makes the state: it says nothing. An unknown rule is tried
        in the next one that matters: where parameters could be stepped at different times."""
        self._steps += 1
        if self.holds is not None or self._steps == 1 or not matters:
            return
        drawn = random_numbers.state()  # a rule that draws some: the step behind us is to draw the same
        try:
            self._twin = _stepped_one_by_one(self._optimizer)
        except Exception:  # whatever an unknown optimizer does when it is treated so: it is not for this
            self.holds = False
        finally:
            random_numbers.set_state(drawn)

    def compare(self) -> None:
        if self._twin is not None:
            self.holds = _equal(self._twin, self._optimizer)
            self._twin = None


def _parameters(optimizer) -> list:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _stepped_one_by_one(optimizer):
    twin = copy.deepcopy(optimizer)
    for ours, theirs in zip(_parameters(optimizer), _parameters(twin)):
        theirs.grad = None if ours.grad is None else ours.grad.clone()
    whole = twin.param_groups
    for group in whole:
        for parameter in group["params"]:
            twin.param_groups = [{**group, "params": [parameter]}]
            rule_alone(twin)
    twin.param_groups = whole
    return twin


def _equal(twin, optimizer) -> bool:
    for theirs, ours in zip(_parameters(twin), _parameters(optimizer)):
        if not torch.equal(theirs, ours) or not _same(twin.state.get(theirs, {}), optimizer.state.get(ours, {})):
            return False
    return True


def _same(a, b) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b
