"""State: what all members have alike, for processes that come in place of lost members."""

from . import checkpoint, packed_state, session, training_state
from .errors import mistake

_states = []  # of this process, in the order in which they were made: the same on all members
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
        for name, value in values.items():
            setattr(self, name, value)
        here = session.current()
        if not here.rejoins:
            return
        if here.regrows and (_states or len(session.models()) > 1):
            raise mistake("shoal.State", "members that come while others go on take over one model, and there are several", "run with --on-peer-lost rejoin")
        _states.append(self)
        here.carry(_write, _brought_here)
        if here.arriving:
            here.arrive()
        if _brought:
            self._take(_brought.pop(0))

    def __setattr__(self, name, value) -> None:
        if name.startswith("_"):
            raise mistake(f"State.{name}", "names of values do not begin with an underscore")
        object.__setattr__(self, name, value)

    def _values(self) -> dict:
        return {name: value for name, value in vars(self).items() if name != "_parts"}

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
        if "course" in everything:
            model._core.take_up(everything["course"])
        for name, value in values.items():
            own = vars(self).get(name)
            own.load_state_dict(value) if hasattr(own, "load_state_dict") else setattr(self, name, value)


def _write() -> bytes:
    return packed_state.pack([checkpoint.saves(), [state._everything() for state in _states]])


def _brought_here(packed) -> None:
    saves, states = packed_state.unpack(packed)
    checkpoint.go_on_after(saves)
    _brought.extend(states)
