"""A model of the zoo whose computing is replayed: its parameters, gradients and their bytes are real, and its fully connected layers compute; all else
takes the time that it took when it was recorded, asleep. So models that need minutes a step, or more cores than there are, train as
on machines that have a core for each member. Nothing is learned. If fully connected layers sleep, too, no factors can be sent, and members share no cores.
"""

import statistics
import time
from collections.abc import Callable

import torch

REPEATS = 3


def record(model: torch.nn.Module, loss: Callable[[], torch.Tensor]) -> list[tuple[str, float, float, int]]:
    """(module's path, seconds of forward, seconds of backward, rows that it is given if it is fully connected) of each module that has parameters,
    in the order of first use. Seconds are those from when it begins until the next one does, and from the gradient before until the last one of
    its own; medians of some passes. `loss` runs forward."""
    rows: dict[str, int] = {}
    modules = [(path, part) for path, part in model.named_modules() if part._parameters]
    passes = []
    for _ in range(REPEATS):
        begins: dict[str, float] = {}
        gradients: dict[str, float] = {}
        hooks = []

        def begin(path: str, part: torch.nn.Module, inputs: tuple) -> None:  # a hook that returns something changes what goes in
            begins.setdefault(path, time.perf_counter())
            if isinstance(part, torch.nn.Linear):
                rows[path] = inputs[0].numel() // part.in_features

        for path, part in modules:
            hooks.append(part.register_forward_pre_hook(lambda part, inputs, path=path: begin(path, part, inputs)))
            hooks += [parameter.register_post_accumulate_grad_hook(lambda _, path=path: gradients.__setitem__(path, time.perf_counter()))
                      for parameter in part._parameters.values() if parameter is not None]
        value = loss()
        turned = time.perf_counter()
        value.backward()
        for hook in hooks:
            hook.remove()
        model.zero_grad()
        used = sorted(begins, key=begins.__getitem__)
        done = sorted(gradients, key=gradients.__getitem__)
        forward = {path: end - begins[path] for path, end in zip(used, [*(begins[path] for path in used[1:]), turned])}
        backward = {path: gradients[path] - before for path, before in zip(done, [turned, *(gradients[path] for path in done)])}
        passes.append([(path, forward[path], backward.get(path, 0.0)) for path in used])
    return [(layer[0][0], statistics.median(each[1] for each in layer), statistics.median(each[2] for each in layer), rows.get(layer[0][0], 0))
            for layer in zip(*passes)]


def replayed(model: torch.nn.Module, recorded: list[tuple[str, float, float, int]], all_asleep: bool) -> torch.nn.Module:
    """A chain of its parts: takes and gives a number. forward() of `model` is never called. all_asleep: fully connected ones, too."""
    parts = dict(model.named_modules())
    return torch.nn.Sequential(*[_Linear(parts[path], rows) if rows and not all_asleep else _Asleep(parts[path], forward, backward)
                                 for path, forward, backward, rows in recorded])


class _Asleep(torch.nn.Module):
    def __init__(self, part: torch.nn.Module, forward: float, backward: float):
        super().__init__()
        for name, parameter in part._parameters.items():
            self.register_parameter(name, parameter)
        self.seconds = forward, backward

    def forward(self, number: torch.Tensor) -> torch.Tensor:
        parameters = [parameter for parameter in self._parameters.values() if parameter is not None]
        for parameter in parameters:
            parameter.detach()  # a function of PyTorch's takes it, as in a layer that computes: who waits for its new values learns of it
        return _Sleep.apply(self.seconds, number, *parameters)


class _Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, seconds, number, *parameters):
        ctx.seconds, ctx.parameters = seconds[1], parameters
        time.sleep(seconds[0])
        return number.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds)
        return None, gradient, *(torch.full_like(parameter, 1e-6) for parameter in ctx.parameters)


class _Linear(torch.nn.Module):
    """Computes, so that a plan may send its factors."""

    def __init__(self, layer: torch.nn.Linear, rows: int):
        super().__init__()
        self.layer = layer
        self.register_buffer("inputs", torch.randn(rows, layer.in_features), persistent=False)

    def forward(self, number: torch.Tensor) -> torch.Tensor:
        return _Collapse.apply(self.layer(_Feed.apply(number, self.inputs)))


class _Feed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, number, inputs):
        return inputs.view_as(inputs)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.new_zeros(()), None


class _Collapse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, outputs):
        ctx.shape = outputs.shape
        return outputs.new_zeros(())

    @staticmethod
    def backward(ctx, gradient):
        return gradient.new_full(ctx.shape, 1e-6)
