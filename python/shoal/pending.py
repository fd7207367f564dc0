"""Parameters whose mean gradient may still be on the wire.

From forward to step a parameter is an instance of a subclass of its own class, whose `grad` waits for the mean. After
the step it is what it was, so optimizers, copies and pickles made between steps never see the subclass.
"""

import os
import sys

import torch

from . import _C, next_use, recording
from .errors import mistake

_TORCH = os.path.dirname(torch.__file__)
_grad = torch.Tensor.grad
_owner = {}  # id of a parameter -> (its gates, its number there); that keeps the parameter alive
_classes = {}
_told = set()  # readers of `.grad` that the report names already


def _settle(parameter, overwrites: bool) -> None:
    gates, number = _owner[id(parameter)]
    means = gates.means
    if (means.overwrite if overwrites else means.install)(number) and recording.active():
        _tell(_reader(sys._getframe(2)))


def _tell(reader: str) -> None:
    if reader not in _told:
        _told.add(reader)
        _C.note(f"barrier: all means were awaited before step() because {reader} read .grad")


def _reader(frame) -> str:
    """What the script called: PyTorch's outermost function, or the script's own function and line."""
    name = None
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        if "<locals>" not in frame.f_code.co_qualname:  # what decorators put around it says nothing
            name = frame.f_code.co_qualname
        frame = frame.f_back
    return name or f"{frame.f_code.co_qualname} ({os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno})"


def _read(self):
    _settle(self, False)
    gradient = _grad.__get__(self)
    if gradient is not None and torch._C._current_graph_task_id() != -1:
        gates, number = _owner[id(self)]
        gates.looks_inside(number)
    return gradient


def _write(self, value):
    _settle(self, True)  # else the mean would later replace what is set here
    _grad.__set__(self, value)
    if value is not None:
        gates, number = _owner[id(self)]
        gates.set_by_hand.add(number)


def _delete(self):
    _write(self, None)


def _deepcopy(self, memo):
    kind = type(self)
    self.__class__ = kind.__bases__[0]
    try:
        copy = self.__deepcopy__(memo)
    finally:
        self.__class__ = kind
    return copy


def _pending(kind: type) -> type:
    if kind not in _classes:
        _classes[kind] = type(kind)("Pending" + kind.__name__, (kind,), {
            "grad": property(_read, _write, _delete),
            "__deepcopy__": _deepcopy,
        })
    return _classes[kind]


def _mark(parameter):
    """What is another when the parameter is: its version, or, where it is changed by .data, which counts none, some of its elements."""
    elements = parameter.detach().flatten()
    return parameter._version, elements[::max(1, len(elements) // 64)].clone().view(torch.uint8)


def is_known(parameter) -> bool:
    """Some model exchanges its gradient."""
    return id(parameter) in _owner


class Gates:
    """The parameters of one model: closed while their means are on the way."""

    def __init__(self, means, parameters, names):
        """means.install(number) is called before a .grad is read, and returns whether that is told; means.overwrite(number) before it is set."""
        self.means = means
        self.set_by_hand = set()  # numbers of those whose .grad the script has set while closed; whoever looks clears it
        self._parameters, self._names = parameters, names
        self._seen_inside = {}    # number of a parameter whose .grad a hook has read in this backward pass -> the mark of its values then
        self._held = frozenset()
        self._kinds = [type(p) for p in parameters]
        self._pending = [_pending(kind) for kind in self._kinds]
        self._closed = False
        for number, parameter in enumerate(parameters):
            _owner[id(parameter)] = (self, number)

    def hold(self, numbers) -> None:
        """These stay closed, in place of those that did: their .grad is not at hand between two steps either."""
        before, self._held = self._held, frozenset(numbers)
        for number in before | self._held:
            next_use.become(self._parameters[number], (self._pending if self._closed or number in self._held else self._kinds)[number])

    def looks_inside(self, number) -> None:
        """A hook reads a gradient inside of a backward pass, where it is this member's own: until the pass ends the parameter must stay."""
        if not self._seen_inside:
            torch.autograd.Variable._execution_engine.queue_callback(self._pass_ends)
        if number not in self._seen_inside:
            self._seen_inside[number] = _mark(self._parameters[number])

    def _pass_ends(self) -> None:
        seen, self._seen_inside = self._seen_inside, {}
        for number, (version, elements) in seen.items():
            version_now, elements_now = _mark(self._parameters[number])
            if version_now != version or not torch.equal(elements_now, elements):
                raise mistake(f"parameter {self._names[number]}",
                              "a hook has stepped it inside of backward(), where .grad is this member's own: each member would go its own way",
                              "step behind backward(), with the optimizer that data_parallel() returned")

    def close(self) -> None:
        self._seen_inside.clear()  # of a pass that an error has ended
        self._become(self._pending, True)

    def open(self) -> None:
        self._become(self._kinds, False)

    def _become(self, kinds, closed: bool) -> None:
        if closed == self._closed:
            return
        self._closed = closed
        for number, (parameter, kind) in enumerate(zip(self._parameters, kinds)):
            if number not in self._held:
                parameter.__class__ = kind

    def release(self) -> None:
        self.hold(())
        self.open()
        for parameter in self._parameters:
            _owner.pop(id(parameter), None)
