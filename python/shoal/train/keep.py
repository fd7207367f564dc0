"""The checkpoints of `shoal train`: where a run goes on, when it saves, and when it ends because it was told to."""

import json
import os

import shoal
from shoal import session, signals

from ..errors import mistake
from .order import Order

# Above 0 the launcher started a run again: the one that it calls by the name beside it.
_RESTARTS = {"TORCHELASTIC_RESTART_COUNT": "TORCHELASTIC_RUN_ID", "SLURM_RESTART_COUNT": "SLURM_JOB_ID", "SHOAL_GENERATION": "SHOAL_JOB"}


def _this_run() -> tuple[dict, list]:
    """(what launchers call this run, under which of these names it is a restarted one)"""
    names = {name: os.environ[name] for name in _RESTARTS.values() if os.environ.get(name)}
    if names.get("TORCHELASTIC_RUN_ID") == "none":  # torchrun's default, for every run; its agent outlives the restarts
        names["TORCHELASTIC_RUN_ID"] = f"{os.uname().nodename}:{os.getppid()}"
    return names, [name for count, name in _RESTARTS.items() if os.environ.get(count, "0") not in ("", "0")]


def _of_another_run():
    return mistake("--checkpoint", "the folder holds the checkpoints of another run", "--resume goes on from there; or name another folder")


class Keeper:
    """Does nothing without --checkpoint."""

    def __init__(self, arguments, model, optimizer, order: Order):
        self._every = arguments.every or 100
        self._parts = model, optimizer, order
        self._checkpoints = shoal.Checkpoints(arguments.checkpoint) if arguments.checkpoint else None
        if self._checkpoints is None:
            return
        self._resume = arguments.resume
        self._settings = {"model": arguments.model, "seed": arguments.seed}
        if session.current().arriving:  # the others know the run's name
            return
        # Of torchrun's agents only some may count a restart, and another than before may have rank 0.
        told = [json.loads(theirs) for theirs in session.current().gather(json.dumps(_this_run()).encode(), "name of the run")]
        self._run = told[0][0]
        restarted = {name for _, theirs in told for name in theirs}
        self._again = {(name, names[name]) for names, _ in told for name in restarted if name in names}

    def state_dict(self) -> dict:
        return {"run": self._run} if self._checkpoints else {}

    def load_state_dict(self, state: dict) -> None:
        self._run = state.get("run")

    def begin(self) -> int:
        """Steps that are taken already: those of the newest checkpoint, if this run is to go on from there."""
        if self._checkpoints is None:
            return 0
        model, optimizer, order = self._parts
        if self._checkpoints.newest() is None:
            return 0
        if not self._resume and not self._again:
            raise _of_another_run()
        state = self._checkpoints.load(model, optimizer)
        if not {"step", "place", "settings", "run"} <= state.keys():
            raise mistake("--checkpoint", "the checkpoints in this folder were not made by shoal train", "name another folder")
        if not self._resume and not self._again & state["run"].items():
            raise _of_another_run()
        for name, value in self._settings.items():
            if state["settings"][name] != value:
                raise mistake("--resume", f"the checkpoint was made with {name} {state['settings'][name]}, this run has {value}")
        order.go_to(state["place"])
        return state["step"]

    def after(self, step: int, last: bool) -> None:
        if self._checkpoints is None:
            return
        due = shoal.checkpoint_due()
        if due or last or step % self._every == 0:
            model, optimizer, order = self._parts
            self._checkpoints.save(step, model, optimizer, step=step, place=order.place(), settings=self._settings, run=self._run)
        if signals.ending():
            shoal.checkpoint_due()  # ends this process when all is written
        if last:
            self._checkpoints.flush()  # a training whose last save failed has failed
            signals.stop_listening()
