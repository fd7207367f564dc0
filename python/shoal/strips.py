"""Strips of a divided layer's weight, and parts of parameters that members step: this member's own, and where those of all members are laid out for
whoever wants the whole.

Regions (net/regions.h) hold what is laid out; what was told after it says of which step it is. Nobody has to help who takes it.
"""

import torch

from . import _C, next_use, session

_FAREWELL = 1 << 62  # a sequence number that no step reaches
_counters = []       # of this process, until the session ends: others may look when here nobody has the model any more


class Counter:
    """On which this member's strips of one model are laid out, as regions. Stays when the model goes, until no other can look any more."""

    def __init__(self):
        self._regions = _C.Regions(session.current())
        self._others = set()
        _counters.append(self)
        session.add_user(self)

    def add(self, memory, others) -> int:
        self._others.update(others)
        return self._regions.add(memory)

    def tell(self, sequence: int) -> None:
        for rank in sorted(self._others):
            self._regions.signal(rank, sequence)

    def get(self, rank: int, sequence: int, region: int, offset: int, into) -> None:
        """What lay there when that member told `sequence`."""
        self._regions.wait(rank, sequence)
        self._regions.get(rank, region, offset, into)

    def settle(self) -> None:
        """What is told is told."""

    def release(self) -> None:
        """Stays until everybody has taken what is here alone."""
        if not session.failed():
            self.tell(_FAREWELL)
            for rank in sorted(self._others):
                self._regions.wait(rank, _FAREWELL)
            self._regions.settle()  # who has heard all others may not be heard yet
        self._regions = None
        _counters.remove(self)


class Strip:
    """This member's strip of one weight, and where everybody's are laid out."""

    def __init__(self, core, number, parameter, layer, counter):
        self.parameter, self.layer = parameter, layer
        ranks, begins = core.strips(number, session.rank())
        place = ranks.index(session.rank())
        self._begin, self._end = begins[place], begins[place + 1]
        self.others = [(rank, begins[p], begins[p + 1]) for p, rank in enumerate(ranks) if p != place]
        self._counter = counter
        self._outlay = {}  # name -> (its region's number, the memory)

    def own(self, whole):
        """The strip of a tensor of the weight's shape."""
        return self.cut(whole, self._begin, self._end)

    def cut(self, whole, begin, end):
        return whole[begin:end]

    def lay_out(self, name: str, values, slot: int) -> None:
        """All members lay out the same names in the same order: so a name's region has the same number everywhere."""
        if name not in self._outlay:
            memory = torch.zeros(1 if name == "gradient" else 2, *values.shape, dtype=values.dtype, device="cpu")
            self._outlay[name] = self._counter.add(memory, [rank for rank, _, _ in self.others]), memory
        place = self._outlay[name][1][slot]
        if values.data_ptr() != place.data_ptr():
            place.copy_(values)

    def get(self, name: str, whole, sequence: int, slot: int) -> None:
        """The others' strips of `whole`, as they had laid them out before they told `sequence`."""
        region, _ = self._outlay[name]
        for rank, begin, end in self.others:
            theirs = self.cut(whole, begin, end)
            self._counter.get(rank, sequence, region, slot * theirs.numel(), theirs)

    def state(self, optimizer) -> dict:
        """What the optimizer keeps of each element of the strip."""
        return {name: self.own(value) for name, value in optimizer.state.get(self.parameter, {}).items() if self._is_whole(value)}

    def make_state_whole(self, optimizer, sequence: int, slot: int) -> None:
        for name, value in optimizer.state.get(self.parameter, {}).items():
            if self._is_whole(value):
                self.get(name, value, sequence, slot)

    def _is_whole(self, value) -> bool:
        return isinstance(value, torch.Tensor) and value.shape == self.parameter.shape

    def stand_in(self, optimizer, mean, slot: int):
        """What the optimizer steps in place of the whole, with the strip's state; what it leaves will be laid out in `slot`."""
        parameter = torch.nn.Parameter(self.own(plain(self.parameter)))
        gradient = next_use.gradient(self.parameter)  # made whole, or the script's own
        parameter.grad = mean if gradient is None else self.own(gradient)
        if self.parameter in optimizer.state:
            kept = optimizer.state[self.parameter]
            optimizer.state[parameter] = {name: self._own_state(name, value, slot) for name, value in kept.items()}
        return parameter

    def _own_state(self, name: str, value, slot: int):
        return self.own(value) if self._is_whole(value) else value

    def take_state(self, optimizer, stand_in) -> None:
        """What the step left: in place, or anew."""
        kept = optimizer.state[self.parameter]
        for name, value in optimizer.state.pop(stand_in, {}).items():
            if isinstance(value, torch.Tensor) and value.shape == stand_in.shape:
                if not self._is_whole(kept.get(name)):
                    kept[name] = torch.zeros_like(plain(self.parameter), dtype=value.dtype)
                strip = self.own(kept[name])
                if strip.data_ptr() != value.data_ptr():
                    strip.copy_(value)
            else:
                kept[name] = value


class Part(Strip):
    """This member's elements of a parameter that all members step together. Its state is here alone, and elsewhere the others'."""

    def cut(self, whole, begin, end):
        return whole.flatten()[begin:end]  # of contiguous memory a view

    def state(self, optimizer) -> dict:
        return {name: value for name, value in optimizer.state.get(self.parameter, {}).items() if self._is_part(value)}

    def _is_part(self, value) -> bool:
        return isinstance(value, torch.Tensor) and value.shape == (self._end - self._begin,)

    def make_state_whole(self, optimizer, sequence: int, slot: int) -> None:
        for name, value in self.state(optimizer).items():
            whole = torch.empty_like(plain(self.parameter), dtype=value.dtype)
            self.own(whole).copy_(value)
            self.get(name, whole, sequence, slot)
            optimizer.state[self.parameter][name] = whole

    def _own_state(self, name: str, value, slot: int):
        """Where it will be laid out: the state of this step and of the one before are all that there is."""
        if self._is_whole(value):
            value = self.own(value).clone()  # which does not keep the others' memory
        if name in self._outlay and self._is_part(value):
            self.lay_out(name, value, slot)
            value = self._outlay[name][1][slot]
        return value

    def take_state(self, optimizer, stand_in) -> None:
        if stand_in in optimizer.state:
            optimizer.state[self.parameter] = optimizer.state.pop(stand_in)


def plain(parameter):
    """Its values, without a look at whether they are whole."""
    with torch._C.DisableTorchFunctionSubclass():
        return parameter.detach()
