"""Local steps: members step by themselves and come together once in so many steps (docs/ways.md, Seldom).

Nothing is exchanged between backward() and step(): every `.grad` is this member's own. What travels and how it is taken over is
shoal/nn/local_rounds.h's; here are the moments at which it does.
"""

import json

import torch

from . import _C, around_steps, join, recording, session, signals
from .buffers import Buffers
from .errors import mistake
from .wrapped import AtSteps, weak


class LocalSteps(AtSteps):
    """Stands for `module` in a training loop, as DataParallel does. Parameters and state_dict are this member's own; after flush() all members
    have them alike."""

    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer, trained, plan: str, saved: str | None):
        super().__init__(module)
        self._optimizer = optimizer
        self._rounds = _C.LocalRounds(session.current(), trained, list(module.named_buffers()), plan, saved)
        self._followed = Buffers(module)
        self._plan_written = False
        self._steps = 0
        around_steps.register(optimizer, self._recorded and self._recorded.step_begins, weak(self, "_after_step"))
        session.add_user(self)
        _C.note(f"not exact: members take local steps ({json.loads(self._rounds.plan())['choice']})")

    # --- the training loop

    @torch._disable_dynamo
    def _forward_begins(self, args, kwargs) -> None:
        samples = _C.samples_in(args, kwargs)
        if self.training:  # an evaluation that forgot no_grad() must not count as samples
            self._rounds.count(samples)
        if self._recorded is not None:
            self._recorded.forward_begins(samples)

    def _after_step(self, optimizer, args, kwargs) -> None:
        if self._rounds is None:
            return
        for name in self._followed.reassigned():
            buffer = self.module.get_buffer(name)
            if buffer.is_floating_point() or buffer.is_complex():
                raise mistake(f"buffer {name}", "the module has put another tensor in its place, and it is to be averaged",
                              "change it in place: self.mean.mul_(0.9).add_(...)")
        self._steps += 1
        if self._recorded is not None:
            self._recorded.step_ends()
        self._rounds.set_asks(signals.pending())
        self._rounds.step_taken()
        recording.tick(optimizer)
        self._keep_plan()

    def flush(self) -> None:
        """Brings all members together now: all steps are in everybody's parameters, which are alike. Every member calls it, after its last
        step or before an evaluation; who has taken fewer steps waits for the others."""
        if self._rounds is None:
            return
        self._rounds.set_asks(signals.pending())
        while self._rounds.idle_round():
            self._rounds.set_asks(signals.pending())
        lags = self._rounds.idled
        source = self._rounds.take_over_from()
        if session.rank() == 0:
            _C.note(f"local steps: members came together {self._rounds.synchronised} times in {self._steps} steps")
        if source is not None:
            join.take_over_optimizer(self._optimizer, source, lags)
        self._keep_plan()

    def settle(self) -> None:
        """What has been sent has arrived. Nothing is taken over earlier than it would have been."""
        if self._rounds is not None:
            self._rounds.hold()

    def samples(self, n: float) -> None:
        """This step's weight in the coming means. Default: the first dimension of forward's first tensor."""
        if self._rounds is not None:
            self._rounds.set_samples(float(n))

    exchanges = property(lambda self: self._rounds is not None, doc="It is trained on several members.")

    def asked(self) -> int:
        """What any member was told since the last call, as far as all members know it (signals.py)."""
        return self._rounds.asked()

    def communication(self) -> tuple[float, float]:
        """Seconds of communication so far, and how many of them training waited for."""
        return self._rounds.communication() if self._rounds is not None else (0.0, 0.0)

    @property
    def plan(self) -> str | None:
        """The plan in use, as JSON."""
        return self._rounds.plan() if self._rounds is not None else None

    @property
    def choice(self) -> str:
        """What the plan was asked for: how many steps, in how many fragments, by which ways. Another run of the same choice can go on in a round."""
        return json.loads(self.plan)["choice"]

    def fit_plan(self) -> None:
        """Nothing: what travels this seldom keeps its plan."""

    def _keep_plan(self) -> None:
        if self._plan_written or not self._rounds.plan_is_final:
            return
        self._plan_written = True
        session.write_plan(self._rounds.plan())

    # --- its state

    def load_state_dict(self, *args, **kwargs):
        """On all members alike: the values are those of a synchronisation."""
        result = self.module.load_state_dict(*args, **kwargs)
        if self._rounds is not None:
            self._rounds.begin_anew()
        return result

    def state_dict_alike(self) -> dict:
        """The module's, with the values of the last synchronisation, which all members have."""
        swapped = [(tensor, tensor.data) for tensor, _ in self._rounds.old_values()]
        try:
            for tensor, old in self._rounds.old_values():
                tensor.data = old
            return self.module.state_dict()
        finally:
            for tensor, own in swapped:
                tensor.data = own

    def progress(self) -> tuple[dict, dict]:
        """What a run that goes on needs beside state_dict_alike(): what all members have alike, and what this one has of its own."""
        at = self._rounds.progress()
        plan = self._rounds.plan() if self._rounds.plan_is_final else None
        alike = {"synchronised": at.synchronised, "steps": at.steps, "values": at.shared, "plan": plan, "choice": self.choice}
        return alike, {"values": at.own, "model": dict(self.module.state_dict()), "optimizer": self._optimizer.state_dict()}

    def continue_from(self, alike: dict, own: dict | None, optimizer) -> None:
        """Before the first step, with state_dict_alike() of then loaded: goes on where as many members stopped."""
        own = own or {"values": {}}
        self._rounds.continue_from(_C.Progress(alike["synchronised"], alike["steps"], alike["values"], own["values"]), alike["plan"])
        if "model" in own:
            self.module.load_state_dict(own["model"])
        if optimizer is not None and "optimizer" in own:
            optimizer.load_state_dict(own["optimizer"])

    def release(self) -> None:
        """Lets go of the session; the module stays, with this member's own values."""
        if self._rounds is None:
            return
        if not session.failed():
            self._rounds.hold()  # others may still wait for what this member passes on
        self._rounds = None
