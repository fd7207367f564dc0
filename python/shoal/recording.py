"""This process's events on their way into the run's folder (SHOAL_RUN_DIR) and, on rank 0, TensorBoard's (SHOAL_TENSORBOARD); at the
end all members' into one place.

Members that `shoal run` started share a folder, and that program reports when all have ended. Under torchrun each member may
have a disk of its own: it leaves its events in torchrun's store as it ends, where rank 0 fetches them and reports. Nobody but
rank 0 waits for anybody, and it only so long: a member that died has left nothing.
"""

import datetime
import os
import pathlib
import sys
import time
import zlib

from . import _C
from .errors import Error, mistake

_PIECE = 1 << 20  # bytes of one value in the store
_PATIENCE = 10.0  # seconds that rank 0 waits at the end for members that are slower than itself

_recorder = None
_flushed = 0.0
_open = None  # the Recording of this process until it has ended


class Recording:
    """Where events go: the folder, and the store through which members with other disks send theirs (None: same disk)."""

    def __init__(self, folder: str, here, store, reports: bool):
        self.folder = pathlib.Path(folder)
        self.rank, self.size = here.rank, here.size
        self.reports = reports  # rank 0 of a run that no `shoal run` watches
        self._store = store
        self._collected = False

    def send(self) -> None:
        if self._store is None or self.rank == 0:
            return
        packed = zlib.compress(self._file(self.rank).read_bytes(), 1)
        pieces = [packed[at:at + _PIECE] for at in range(0, len(packed), _PIECE)]
        for i, piece in enumerate(pieces):
            self._store.set(self._key(self.rank, i), piece)
        self._store.set(self._key(self.rank, "pieces"), str(len(pieces)))

    def collect(self, patience: float) -> list[int]:
        """Brings the other members' events here; returns the ranks that sent none in time."""
        if self._store is None or self._collected:
            return []
        self._collected = True
        deadline = time.monotonic() + patience
        return [rank for rank in range(1, self.size) if not self._fetch(rank, deadline)]

    def _fetch(self, rank: int, deadline: float) -> bool:
        left = max(0.001, deadline - time.monotonic())
        try:
            self._store.wait([self._key(rank, "pieces")], datetime.timedelta(seconds=left))
            pieces = int(self._store.get(self._key(rank, "pieces")))
            packed = b"".join(self._store.get(self._key(rank, i)) for i in range(pieces))
        except RuntimeError:  # c10d's: not in time, or the store is gone
            return False
        self._file(rank).write_bytes(zlib.decompress(packed))
        return True

    def _file(self, rank: int) -> pathlib.Path:
        return self.folder / f"events-{rank}.jsonl"

    @staticmethod
    def _key(rank: int, part) -> str:
        return f"shoal/events/{rank}/{part}"


def start(folder: str | None, here, store, reports: bool) -> None:
    global _recorder, _open
    tensorboard = os.environ.get("SHOAL_TENSORBOARD") or None if here.rank == 0 else None
    if not folder and not tensorboard:
        return
    if folder:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise mistake("SHOAL_RUN_DIR", f"cannot make {folder}: {error.strerror}", "name a folder that can be written") from None
        _open = Recording(folder, here, store, reports)
    _recorder = _C.Recorder(folder or None, tensorboard, here.rank, here.size)


def active() -> bool:
    return _recorder is not None


def metric(name: str, value: float, step: int | None = None) -> None:
    """A figure of the training (loss, accuracy) for the report and TensorBoard; without a step it is of the current one."""
    if _recorder is not None:
        _C.metric(name, float(value), -1 if step is None else int(step))


def tick(optimizer=None) -> None:
    """Brings events to their files about once a second; called at every step. optimizer: None on a member that only serves."""
    global _flushed
    if _recorder is not None and time.monotonic() - _flushed > 1:
        _flushed = time.monotonic()
        rate = None if optimizer is None else optimizer.param_groups[0].get("lr")  # an optimizer need not have one
        if rate is not None:
            metric("learning_rate", rate)
        _recorder.flush()


def stop() -> None:
    """The last event is in this member's file, and on its way to rank 0."""
    global _recorder
    if _recorder is None:
        return
    _recorder.close()
    _recorder = None
    try:
        if _open is not None:
            _open.send()
    except RuntimeError as error:
        print(f"shoal: the events of rank {_open.rank} stay in {_open.folder}: {str(error).splitlines()[0]}", file=sys.stderr)


def report():
    """On rank 0, when all have stopped: tables and the paths of trace and report."""
    global _open
    _open.collect(_PATIENCE)
    folder, _open = str(_open.folder), None
    return _C.finish_run(folder)


def end(failed: bool) -> None:
    """At the end of the process. A run that failed is reported as far as events have come, at once."""
    global _open
    stop()
    if _open is None:
        return
    ended, _open = _open, None
    if not ended.reports:
        return
    missing = ended.collect(0 if failed else _PATIENCE)
    if missing:
        print(f"shoal: no events of rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))} in the report", file=sys.stderr)
    try:
        said = _C.finish_run(str(ended.folder))
        print(f"shoal: {said['why']}\nshoal: report {said['report']}", file=sys.stderr)
    except Error as error:
        print(f"shoal: no report: {error}", file=sys.stderr)
