"""Fully connected layers whose gradients may travel by their factors (shoal/nn/factored_linear.h).

From forward to step an nn.Linear of the model runs our operator in place of its own; what it computes is the same, bit for bit, and compilers
take it into their graphs. Between steps the model is what it was.
"""

import types

import torch
import torch.nn.functional as F

from . import next_use

LEAST = 1 << 16  # elements of a weight: smaller ones are packed with others


_FORWARD = torch.nn.Linear.forward


class Layers:
    """Those of one model: open from a forward pass to the step that follows."""

    def __init__(self, core, module, parameters):
        number = {id(p): i for i, p in enumerate(parameters)}
        self._layers = [(layer, Forward(core, layer, number[id(layer.weight)])) for layer in candidates(module, parameters)]

    def open(self) -> None:
        if torch.nn.Linear.forward is not _FORWARD:
            return  # somebody has put another in the place of all
        for layer, forward in self._layers:
            layer.__dict__.setdefault("forward", forward)  # one of the user's own stays

    def close(self) -> None:
        for layer, _ in self._layers:
            if isinstance(layer.__dict__.get("forward"), Forward):
                del layer.__dict__["forward"]


def candidates(module, parameters) -> list:
    large = {id(p) for p in parameters if p.numel() >= LEAST and p.dtype == torch.float32}
    return [layer for layer in module.modules()
            if type(layer) is torch.nn.Linear and id(layer.weight) in large and "forward" not in layer.__dict__]


class Forward:
    def __init__(self, core, layer, number):
        self._layer, self._weight = layer, layer.weight
        self._name = core.layer(number)

    def __call__(self, input):  # named as nn.Linear names it
        x, layer, weight = input, self._layer, self._layer.weight
        if not torch.compiler.is_compiling():
            next_use.tell(x, weight, layer.bias)
            # What looks at the weight's gradient as it comes needs one.
            if weight._backward_hooks or weight._post_accumulate_grad_hooks or torch._C._functorch.peek_interpreter_stack() is not None:
                return F.linear(x, weight, layer.bias)
        if not torch.is_grad_enabled() or weight is not self._weight:
            return F.linear(x, weight, layer.bias)
        return torch.ops.shoal.factored_linear.default(x, weight, layer.bias, self._name)

    # A copy of the layer that is made meanwhile is a plain one.
    def __deepcopy__(self, memo):
        return types.MethodType(_FORWARD, memo[id(self._layer)])

    def __reduce__(self):
        return _plain, (self._layer,)


def _plain(layer):
    return types.MethodType(_FORWARD, layer)
