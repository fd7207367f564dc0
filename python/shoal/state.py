"""State: what all members have alike, for processes that come in place of lost members."""

import json

import torch

from . import _C, around_steps, checkpoint, packed_state, session, training_state
from .errors import mistake
from .next_use import READ, WRITE
from .wrapped import weak

_states = []  # of this process, in the order in which they were made: the same on all members
_cannot_follow = False
_brought = []  # to this process, which came in place of a lost member; those of which no State has been made yet


class State:
    """Model, optimizer and plain values that all members have alike at each step.

        model, optimizer = shoal.data_parallel(model, optimizer)
        state = shoal.State(model, optimizer, step=0)
        while state.step < 1000:
            x, y = batch(state.step, shoal.rank())
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            state.step += 1

    Under `shoal run --on-peer-lost rejoin` a step in which a member is lost waits for the process that is started in its place. That one runs the
    same script; here it takes over model, optimizer and values as another member has them then, and comes to the same step. So between two
    calls of optimizer.step() the values say which step is at hand. What a step does follows from them, from the rank, and from nothing that an
    earlier step left: which samples it takes, and its random numbers (torch.manual_seed(state.step) in front of a model with dropout).
    Under `--on-peer-lost regrow` the others train on until it has come, and it takes over what they have as a forward pass begins, the first one of a step.
    Elsewhere a State is a plain namespace.

    Values: what a checkpoint may hold (numbers, text, tensors, lists, dicts), and whatever has state_dict() and load_state_dict(), as schedules of
    learning rates. Made by each member before the first step, when all models are wrapped by data_parallel(); several models have a State each.
    """

    def __init__(self, model, optimizer=None, /, **values):
        object.__setattr__(self, "_parts", (model, optimizer))
        object.__setattr__(self, "_last", None)
        for name, value in values.items():
            setattr(self, name, value)
        here = session.current()
        if not here.rejoins:
            return
        if here.carries and not _states:
            raise mistake("shoal.State", "tables are shared in this run, and members that come in place of lost ones take over one or the other", "run with --on-peer-lost shrink")
        if here.regrows and (_states or len(session.models()) > 1):
            raise mistake("shoal.State", "members that come while others go on take over one model, and there are several", "run with --on-peer-lost rejoin")
        _states.append(self)
        here.carry(_write, _brought_here, _parts_fed, _write_last, _follow, _digest)
        if here.regrows and optimizer is not None:
            around_steps.register(optimizer, before=weak(self, "_feed"))
        if here.arriving:
            here.arrive()
        if _brought:
            self._take(_brought.pop(0))
        elif self._last is not None:
            self._take_last()

    def __setattr__(self, name, value) -> None:
        if name.startswith("_"):
            raise mistake(f"State.{name}", "names of values do not begin with an underscore")
        object.__setattr__(self, name, value)

    def _values(self) -> dict:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _everything(self) -> dict:
        values = {name: value.state_dict() if hasattr(value, "state_dict") else value for name, value in self._values().items()}
        model, optimizer = self._parts
        everything, core = training_state.collect(model, optimizer, values), getattr(model, "_core", None)
        if core is not None:
            everything["course"] = core.course()
            common = zip((name for name, _ in model.module.named_buffers()), core.common_buffers)  # without this step's forward pass
            everything["model"] |= {name: value for name, value in common if name in everything["model"]}
        return everything

    def _take(self, everything: dict) -> None:
        model, optimizer = self._parts
        values = training_state.put_back(everything, None, "the state of the others", model, optimizer)
        self._take_up(everything.get("course"), values)

    def _take_up(self, course, values: dict) -> None:
        if course is not None:
            self._parts[0]._core.take_up(course)
        for name, value in values.items():
            own = vars(self).get(name)
            own.load_state_dict(value) if hasattr(own, "load_state_dict") else setattr(self, name, value)

    # --- followed while the others train on: parameters and what the optimizer keeps of them, step by step; all else with the last piece

    def _groups(self) -> list[dict]:
        return [{name: value for name, value in group.items() if name != "params"} for group in self._parts[1].param_groups]

    def _feed(self, optimizer, args, kwargs) -> None:
        here = session.current()
        if here.feeds:
            gradients = [[READ(parameter) for parameter in group["params"]] for group in optimizer.param_groups]
            if any(gradient is not None and gradient.layout != torch.strided for part in gradients for gradient in part):
                gradients = None
            here.feed(packed_state.parts([None, {"groups": self._groups(), "gradients": gradients}]))

    def _follow(self, piece: dict) -> None:
        model, optimizer = self._parts
        if _brought:
            training_state.put_back(_brought.pop(0), None, "the state of the others", model, optimizer)
        for group, now in zip(optimizer.param_groups if piece["groups"] else [], piece["groups"]):
            group.update(now)
        if "gradients" not in piece:
            object.__setattr__(self, "_last", piece)
            return
        given = [pair for group, gradients in zip(optimizer.param_groups, piece["gradients"]) for pair in zip(group["params"], gradients)]
        for parameter, gradient in given:
            WRITE(parameter, gradient)
        around_steps.rule_alone(optimizer)
        for parameter, _ in given:
            WRITE(parameter, None)

    def _write_last(self) -> dict:
        everything = self._everything()
        module = getattr(self._parts[0], "module", self._parts[0])
        parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        beside = {name: value for name, value in everything["model"].items() if name not in parameters}
        return {"groups": self._groups() if self._parts[1] is not None else [], "model": beside, "values": everything["state"], "course": everything.get("course")}

    def _take_last(self) -> None:
        piece = self._last
        self._parts[0].load_state_dict(piece["model"], strict=False)
        self._take_up(piece["course"], piece["values"])
        object.__setattr__(self, "_last", None)

    def _digest(self) -> int:
        """Of what is followed step by step."""
        model, optimizer = self._parts
        tensors: dict[str, torch.Tensor] = {}
        tree = training_state.flatten("", [dict(model.named_parameters()), optimizer.state_dict()["state"] if optimizer is not None else None], tensors)
        return _C.digest_of([*tensors.values(), torch.frombuffer(bytearray(json.dumps(tree).encode()), dtype=torch.uint8)])


def _write() -> bytes:
    return packed_state.pack([checkpoint.saves(), [state._everything() for state in _states]])


def _parts_fed() -> list:
    """The same bytes on all members, who feed it together: each has measured its plan's seconds itself, and who comes gets that with the last piece."""
    return packed_state.parts([checkpoint.saves(), [state._everything() | {"course": None, "exchange": None} for state in _states]])


def _brought_here(packed) -> None:
    global _cannot_follow
    _cannot_follow = False
    saves, states = packed_state.unpack(packed)
    checkpoint.go_on_after(saves)
    _brought[:] = states


# Under regrow there is one State.

def _write_last() -> bytes:
    return packed_state.pack([checkpoint.saves(), _states[0]._write_last()])


def _follow(packed) -> bool:
    """A step that cannot be followed shows in the digest: then the state is brought as a whole."""
    saves, piece = packed_state.unpack(packed)
    global _cannot_follow
    try:
        _states[0]._follow(piece)
    except Exception:  # of an optimizer that wants more than dense gradients
        _cannot_follow = True
    if saves is not None:
        checkpoint.go_on_after(saves)
    return saves is not None


def _digest() -> int:
    return 0 if _cannot_follow else _states[0]._digest()
