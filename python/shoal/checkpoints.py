"""Checkpoints of a run in progress: the state is copied between two steps, and written while training goes on."""

import os
import re
import sys
import threading

from . import checkpoint, durable, session, training_state

_KEPT = 2  # the newest whole ones; what they replace is removed
_STEP = re.compile(r"step-(\d{8,})")

_unfinished = set()  # whose last save nobody has waited for: held until it is known how that ended


class Checkpoints:
    """The checkpoints in one folder, by step. Every member makes one and calls it at the same steps."""

    def __init__(self, folder):
        self._folder = os.path.abspath(folder)
        self._here = session.current()
        self._thread = None
        self._failure = None
        session.add_user(self)
        self._generation = None
        if not self._here.arriving:  # else the others have met already, and it is with them when they save next
            self._meet()

    def _meet(self) -> None:
        """All members that there are together: who shares a disk."""
        group, behind = checkpoint.sharers(self._folder)
        self._first_of_group = self._here.rank == group[0]
        self._writer = checkpoint.Writer(self._here, group, behind)
        self._generation = self._here.generation

    def save(self, step: int, model, optimizer=None, /, **state) -> None:
        """As shoal.save() of the state after `step`; returns when it is copied. Waits for the one before, if that is still written."""
        session.flush()
        training_state.level(model)
        if self._generation != self._here.generation:
            self.flush()
            self._meet()
        checkpoint.count_save()
        self._writer.take(model, optimizer, state)
        _unfinished.add(self)
        self._thread = threading.Thread(target=self._write, args=(self._at(step), session.patience()), name="shoal-checkpoint", daemon=True)
        self._thread.start()

    def newest(self) -> int | None:
        """The step of the newest whole checkpoint that any member has. None on a member that came in place of a lost one: shoal.State has what it needs."""
        newest = self._newest()
        return None if newest is None else newest[0][0]

    def load(self, model, optimizer=None, /) -> dict | None:
        """As shoal.load() of the newest whole checkpoint; None where there is none."""
        newest = self._newest()
        if newest is None:
            return None
        (step, *_), holders = newest
        return checkpoint.load_from(self._at(step), holders, model, optimizer)

    def flush(self) -> None:
        """Waits until this member's part is on the disk; on the first member that sees the folder, until all parts are."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            _unfinished.discard(self)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    settle = flush

    def release(self) -> None:
        if not session.failed():  # else a part may never come
            self.flush()

    def _newest(self) -> tuple[list, list[int]] | None:
        """([step, ...], who has it) of the newest whole checkpoint on any disk."""
        self.flush()
        if self._here.arriving:
            return None
        self._here.gather(b"", "arrival at the checkpoints")
        return checkpoint.agree(self._here, self._look)

    def _look(self) -> list | None:
        steps = whole(self._folder)
        return [steps[-1], *checkpoint.identity(self._at(steps[-1]))] if steps else None

    def _at(self, step: int) -> str:
        return os.path.join(self._folder, f"step-{step:08d}")

    def _write(self, folder: str, patience: float) -> None:
        try:
            self._writer.write_folder(folder, patience)
            if self._first_of_group:
                _remove_old(self._folder)
        except checkpoint.MemberLost as lost:
            print(f"shoal: {lost}; the checkpoint before it stays", file=sys.stderr, flush=True)
        except OSError as error:
            self._failure = durable.failure(folder, "cannot be written", error)
        except Exception as error:  # whatever it is, the one who waits for this save must hear of it
            self._failure = error


def whole(folder: str) -> list[int]:
    """The steps of which `folder` holds a whole checkpoint, in order."""
    found = (int(match[1]) for match in map(_STEP.fullmatch, os.listdir(folder)) if match)
    return sorted(step for step in found if os.path.exists(os.path.join(folder, f"step-{step:08d}", checkpoint.INDEX)))


def _remove_old(folder: str) -> None:
    kept = whole(folder)[-_KEPT:]
    for name in os.listdir(folder):
        match = _STEP.fullmatch(name)
        old = os.path.join(folder, name)
        if match and int(match[1]) not in kept and int(match[1]) < kept[-1] and os.path.isdir(old):
            durable.remove_folder(old, first=checkpoint.INDEX)
