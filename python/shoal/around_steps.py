"""Hooks around an optimizer's step, each called once a step.

PyTorch hooks the step() of each class of which somebody has made an optimizer. Where such a step() calls another one, as super().step(), all hooks run a second
time inside of it: there a step neither begins nor ends, and ours are silent. (So they are for a step that a step's own closure takes.)
"""

import sys
import weakref
from collections import OrderedDict

import torch

_nesting = weakref.WeakSet()  # optimizers whose steps have been seen to call others


def register(optimizer, before=None, after=None) -> tuple:
    """Calls before and after as PyTorch calls its hooks. Their numbers among the optimizer's; None of what is not given."""
    return (optimizer.register_step_pre_hook(_once(before)).id if before else None,
            optimizer.register_step_post_hook(_once(after)).id if after else None)


def has_inner_ones(optimizer) -> bool:
    """Its step() calls another one, around which everybody else's hooks run, too. Known from its first step on."""
    return optimizer in _nesting


def rule(kind):
    """What step() of this class of optimizers does, without the hooks around it."""
    step = kind.step
    return step.__wrapped__ if getattr(step, "hooked", False) else step


def rule_alone(optimizer) -> None:
    """Steps the parameters that its groups hold. No hook of this optimizer runs meanwhile, whatever its step() calls: they are for whole steps."""
    hooks = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
    try:
        rule(type(optimizer))(optimizer)
    finally:
        optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks = hooks


_HOOKED = torch.optim.Optimizer.profile_hook_step(lambda self: None).__code__  # which all hooked ones have in common


def _once(hook):
    def hook_of_whole_step(optimizer, args, kwargs):
        return None if _is_inner(optimizer) else hook(optimizer, args, kwargs)
    return hook_of_whole_step


@torch._disable_dynamo
def _is_inner(optimizer) -> bool:
    """The hooked step() that calls us is not the only one of this optimizer that is under way."""
    frame, under_way = sys._getframe(), 0
    while frame is not None and under_way < 2:
        if frame.f_code is _HOOKED and frame.f_locals["args"][0] is optimizer:
            under_way += 1
        frame = frame.f_back
    if under_way == 2:
        _nesting.add(optimizer)
    return under_way == 2
