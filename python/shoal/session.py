"""This process's place in the run. One session a process, made by init()."""

import atexit
import os
import sys
import time
import weakref

from . import _C
from .errors import install_excepthook, mistake

VERSION = "0.1.0"

_session = None
_recorder = None  # of this process's events, where the run has a folder
_flushed = 0.0
_process = os.getpid()  # a forked child (data loaders) owns nothing here
_users = weakref.WeakSet()  # what must let go of the session before it ends


def init() -> None:
    """Joins the run that this process was started in: `shoal run`, torchrun, or alone. Again: does nothing."""
    global _session, _recorder
    if _session is not None:
        return
    patience = _patience()
    fingerprint = f"shoal {VERSION}"
    launcher, rank, size, _ = _C.find_place()
    if launcher == "torchrun" and size > 1:
        _session = _join_by_torchrun(fingerprint, patience)
    else:
        _session = _C.join(fingerprint, patience)
    folder = run_folder()
    if folder:
        _recorder = _C.Recorder(folder, _session.rank, _session.size)


def run_folder() -> str | None:
    """Where the run keeps its plan, events and report; None for a run that keeps nothing."""
    return os.environ.get("SHOAL_RUN_DIR")


def recording() -> bool:
    return _recorder is not None


def tick() -> None:
    """Brings events to their file about once a second; called at every step."""
    global _flushed
    if _recorder is not None and time.monotonic() - _flushed > 1:
        _flushed = time.monotonic()
        _recorder.flush()


def stop_recording() -> None:
    global _recorder
    if _recorder is not None:
        _recorder.close()
        _recorder = None


def _patience() -> float:
    text = os.environ.get("SHOAL_TIMEOUT", "1800")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e7:
        raise mistake("SHOAL_TIMEOUT", f"{text!r} is not a number of seconds")
    return seconds


def _join_by_torchrun(fingerprint: str, patience: float):
    from torch import distributed

    store, rank, _ = next(distributed.rendezvous("env://"))
    session, secret_from_store = _C.join_by_store(store, fingerprint, patience)
    if secret_from_store and rank == 0:
        print("shoal: the job's secret travels through torchrun's store, which anybody on this network may read; "
              "set SHOAL_SECRET to avoid that", file=sys.stderr)
    return session


def current():
    """The session; joins at the first use."""
    init()
    return _session


def rank() -> int:
    return current().rank


def size() -> int:
    return current().size


def release_at_end(user) -> None:
    """`user.release()` will be called before the session ends."""
    _users.add(user)


def _leave() -> None:
    global _session
    if os.getpid() != _process:
        return
    for user in list(_users):
        user.release()
    stop_recording()
    _session = None


def _give_up(error: BaseException) -> None:
    # An error of Shoal has been told already by who found it; a KeyboardInterrupt reaches every member by itself.
    from .errors import PeerLost

    if _session is None or os.getpid() != _process or isinstance(error, (PeerLost, KeyboardInterrupt)):
        return
    text = " ".join(str(error).split())
    _session.give_up(f"it ended with {type(error).__name__}: {text}")


install_excepthook(_give_up)
atexit.register(_leave)
