"""Optimizer steps by parameter: each runs when its mean has arrived and the parameter is next used, behind step() itself.

So the next forward pass begins while deep layers are on the wire (P3: Jayarajan et al., MLSys 2019). step() steps the parameters whose
means are here; of the others it takes down their groups' hyper-parameters as they are at that moment. Exact for any optimizer whose
rule treats each parameter by itself, without a change to it: it is run on the parameters at hand alone.

A parameter that waits can be used by nobody before its step (next_use.py), so after a failure no mixture of two steps is ever seen; nor can
the optimizer's state (state_use.py). A parameter in whose memory something else looks, such as a flat copy of all, does not wait.
"""

from contextlib import ExitStack, contextmanager

import torch

from . import _C, next_use, state_use
from .around_steps import rule_alone
from .by_parameter import Rule


class Steps:
    """Of one model by one optimizer."""

    def __init__(self, core, optimizer, parameters):
        self._core, self._optimizer, self._parameters = core, optimizer, parameters
        self._number = {id(p): i for i, p in enumerate(parameters)}
        self._rule = Rule(optimizer)
        self._forbidden = self._begun = self._stepping = False  # stepping: from the first parameter's step to the commit
        self._narrowed = []        # (group, all its parameters) while the optimizer sees some of them
        self._hyper = {}           # number of a parameter that waits -> its group at step(), without parameters
        self._told = False         # of memory that something else holds
        self._overwritten = set()  # those whose .grad was set since then

    waiting = property(lambda self: bool(self._hyper), doc="Some parameters wait for their step.")

    def forbid(self, why: str) -> None:
        if not self._forbidden:
            self._forbidden = True
            _C.note(f"barrier: all means are awaited in step() because {why}")

    # --- around the optimizer's own step

    def begin(self, closure: bool, compiled: bool) -> bool:
        """Leaves to the optimizer the parameters whose means are here. False: it must have all of them."""
        if self._forbidden or self._hyper or not self._core.is_open or self._rule.holds is None:
            return False
        if not self._core.plan_is_final or not self._core.by_priority or self._core.needs_whole_step:
            return False
        if closure:
            self.forbid("the optimizer's step is given a closure")
            return False
        if not self._rule.holds:
            self.forbid(f"{type(self._optimizer).__name__} does not step each parameter by itself")
            return False
        self._core.step_begins()
        self._stepping = True
        here, mine = set(self._core.arrived()), set()
        # What the compiler keeps of a model may hold the memory, too, and only guards it.
        if not compiled and (shared := set(self._core.aliased()) - here):
            self._tell_of(shared)
            here |= shared
        for group in self._optimizer.param_groups:
            numbers = [self._number.get(id(p)) for p in group["params"]]  # None: of another model
            mine.update(numbers)
            late = [number for number in numbers if number is not None and number not in here]
            if late:
                self._hyper.update(dict.fromkeys(late, _without_parameters(group)))
                self._narrowed.append((group, group["params"]))
                group["params"] = [p for p, number in zip(group["params"], numbers) if number is None or number in here]
        try:
            for number in range(len(self._parameters)):
                if number in here or number not in mine:
                    self._core.settle(number)
        except BaseException:
            self._widen()  # nothing is stepped; whoever looks at the groups finds them whole
            raise
        self._core.update_begins()
        self._begun = True
        return True

    def begin_whole(self) -> None:
        """All means are installed."""
        self._rule.watch(self._core.plan_is_final and self._core.by_priority and not self._forbidden)

    def end(self) -> None:
        self._widen()
        if not self._begun:
            self._rule.compare()
            self._core.commit()
            return
        self._begun = False
        self._core.update_ends()
        for number in self._hyper:
            next_use.wait(self, number, self._parameters[number])
        if self._hyper:
            state_use.wait(self._optimizer, self)
        else:
            self._commit()

    def _tell_of(self, shared) -> None:
        if not self._told:
            self._told = True
            name = self._core.name_of(min(shared))
            _C.note(f"barrier: the mean of {name} is awaited in step() because something else holds the parameter's memory")

    def _commit(self) -> None:
        self._stepping = False
        self._core.commit()

    def _widen(self) -> None:
        for group, parameters in self._narrowed:
            group["params"] = parameters
        self._narrowed.clear()

    # --- later

    def used(self, numbers, function) -> bool:
        if function in (next_use.WRITE, next_use.DELETE):
            self._overwritten.update(numbers)
            return True
        if function == next_use.READ and next_use.only_drops_gradients():
            self._overwritten.update(numbers)  # also where there is none yet to drop: the mean that is on its way goes, too
            return True
        self.settle(numbers)
        return False

    def settle(self, numbers) -> None:
        """Steps these and, in the same go, whatever else has its mean by then: each go of the optimizer costs. Before it waits for a mean it steps all others
        that are here."""
        while wanted := [n for n in dict.fromkeys(numbers) if n in self._hyper]:
            self._step([n for n in self._core.arrived() if n in self._hyper] or wanted[:1])
        if not self._hyper and self._stepping:
            self._commit()

    def settle_all(self) -> None:
        self._widen()  # if the optimizer's own step threw
        self._begun = False
        self.settle(list(self._hyper))

    def _step(self, numbers) -> None:
        kept = {n: next_use.gradient(self._parameters[n]) for n in numbers if n in self._overwritten}
        for number in numbers:
            self._core.settle(number)  # waits. An error leaves the parameter as it was, and waiting
        groups = {}
        for number in numbers:
            next_use.done(self._parameters[number])
            hyper = self._hyper.pop(number)
            groups.setdefault(id(hyper), {**hyper, "params": []})["params"].append(self._parameters[number])
        optimizer = self._optimizer
        state_use.done(optimizer, self)
        whole, optimizer.param_groups = optimizer.param_groups, list(groups.values())
        self._core.update_begins()
        try:
            with torch.inference_mode(False), _without_autocast({p.device.type for group in groups.values() for p in group["params"]}):
                rule_alone(optimizer)
        finally:
            optimizer.param_groups = whole
            self._core.update_ends()
            if self._hyper:
                state_use.wait(optimizer, self)
        for number, gradient in kept.items():
            self._parameters[number].grad = gradient
        self._overwritten.difference_update(numbers)


@contextmanager
def _without_autocast(devices):
    """The rule is what it is, wherever the parameter is first used."""
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _without_parameters(group: dict) -> dict:
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in group.items() if name != "params"}
