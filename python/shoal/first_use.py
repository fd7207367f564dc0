"""In which order and when parameters are used, observed in the first forward passes: it decides who goes first.

These passes run uncompiled: the compiler would look into what watches.
"""

import time

import torch

from . import next_use


_PASSES = 2  # the first one makes much that no other does, so its times say little


class FirstUse:
    def __init__(self, module, parameters, core):
        self._module, self._core = module, core
        self._parameters = parameters
        self._seen = {}  # number of a parameter -> seconds from the start of the pass
        self._left = _PASSES

    known = property(lambda self: self._left == 0)

    @torch._disable_dynamo
    def watch(self, args, kwargs):
        """One forward pass. An error leaves the order unknown: half a pass says nothing, the next one is watched."""
        self._seen.clear()
        self._began = time.perf_counter()
        watched = [(number, p) for number, p in enumerate(self._parameters) if not next_use.waits(p)]  # the others have somebody else to tell
        for number, parameter in watched:
            next_use.wait(self, number, parameter)
        try:
            with torch.compiler.set_stance("force_eager"):  # for what is compiled inside; disabling is for what is around us
                output = self._module(*args, **kwargs)
        finally:
            for _, parameter in watched:
                next_use.done(parameter)
        whole = time.perf_counter() - self._began
        self._left -= 1
        place = {number: i for i, number in enumerate(self._seen)}
        self._core.set_first_use([(place.get(i, len(place)), self._seen.get(i, whole) / whole) for i in range(len(self._parameters))])
        return output

    def unseen(self) -> bool:
        """Some parameter has a gradient though nobody was seen to use it: code takes it past Python's functions. Then none can be waited for."""
        if all(number in self._seen or p.grad is None for number, p in enumerate(self._parameters)):
            return False
        self._core.set_first_use([(number, -1.0) for number in range(len(self._parameters))])
        return True

    def used(self, numbers, function) -> bool:
        if function in (next_use.READ, next_use.WRITE, next_use.DELETE):
            return True
        for number in numbers:
            self._seen.setdefault(number, time.perf_counter() - self._began)
            next_use.done(self._parameters[number])
        return False
