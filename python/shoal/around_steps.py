"""Hooks around an optimizer's step, each called once a step.

PyTorch hooks the step() of each class of which somebody has made an optimizer. Where a class's step() calls super().step(), all hooks run a second time
inside of it: there a step neither begins nor ends, and ours are silent. So they are while a rule runs alone, without the hooks around it.
"""

import sys

import torch


def register(optimizer, before=None, after=None) -> tuple:
    """Calls before and after as PyTorch calls its hooks. Their numbers among the optimizer's; None of what is not given."""
    return (optimizer.register_step_pre_hook(_once(before)).id if before else None,
            optimizer.register_step_post_hook(_once(after)).id if after else None)


def rule(kind):
    """What step() of this class of optimizers does, without the hooks around it."""
    step = kind.step
    return step.__wrapped__ if getattr(step, "hooked", False) else step


def rule_alone(optimizer) -> None:
    rule(type(optimizer))(optimizer)


_HOOKED = torch.optim.Optimizer.profile_hook_step(lambda self: None).__code__  # which all hooked ones have in common


def _once(hook):
    def hook_of_whole_step(optimizer, args, kwargs):
        return None if _is_inside(optimizer) else hook(optimizer, args, kwargs)
    return hook_of_whole_step


def _is_inside(optimizer) -> bool:
    """The hooked step() that calls us is a part of another one of this optimizer, or of its rule."""
    steps = [vars(kind)["step"] for kind in type(optimizer).__mro__ if "step" in vars(kind)]
    if not any(getattr(step, "hooked", False) for step in steps[1:]):
        return False
    frame, around = sys._getframe(2), 0
    while frame is not None and around < 2:
        if frame.f_code is _HOOKED:
            around += frame.f_locals["args"][0] is optimizer
        elif frame.f_code is rule_alone.__code__:
            around += frame.f_locals["optimizer"] is optimizer
        frame = frame.f_back
    return around == 2
