"""Shoal's errors, and how a script ends that does not catch them.

An uncaught Shoal error ends the process with its one line last on stderr and an exit code that says whose turn
it is: 2 the user's, 3 a peer was lost, 1 anything else. A user's mistake, a lost peer and what a disk refuses show no
traceback: it would point at innocent code.
"""

import atexit
import io
import os
import sys

from torch.distributed import DistBackendError

_WITHOUT_TRACEBACK = {"invalid_argument", "mismatch", "unsupported", "peer_lost", "io"}


class Error(RuntimeError):
    """What happened, where, and what to do about it: one line. `code` names the kind."""

    def __init__(self, line: str, code: str = "internal", exit_code: int = 1):
        super().__init__(line)
        self.code = code
        self.exit_code = exit_code


class PeerLost(Error, DistBackendError):
    """A member died or cannot be heard; the line names it and what it did last."""

    def __init__(self, line: str, code: str = "peer_lost", exit_code: int = 3):
        super().__init__(line, code, exit_code)  # the backend raises it with the line alone


class Mistake(Error, DistBackendError):
    """What whoever started the job can mend, found by the backend: a variable, a file."""

    def __init__(self, line: str, code: str = "invalid_argument", exit_code: int = 2):
        super().__init__(line, code, exit_code)  # the backend raises it with the line alone


def from_core(code: str, exit_code: int, line: str) -> Error:
    kind = PeerLost if code == "peer_lost" else Error
    return kind(line, code, exit_code)


def mistake(where: str, what: str, hint: str = "") -> Error:
    """A user's mistake, in the form that the C++ half uses."""
    line = f"{where}: {what}" + (f" ({hint})" if hint else "")
    return Error(line, "invalid_argument", 2)


def install_excepthook(before_exit) -> None:
    """`before_exit(error)` runs after the traceback, before the process ends: peers learn of it there. Again: nothing, where it is outermost still."""
    previous = sys.excepthook
    if getattr(previous, "before_exit", None) is before_exit:
        return

    def hook(kind, value, traceback):
        if not isinstance(value, Error):
            previous(kind, value, traceback)
            before_exit(value)
            return
        # The hook of torch.distributed, around ours, would print what it collects here when we have ended already.
        if isinstance(sys.stderr, io.StringIO):
            sys.stderr = sys.__stderr__
        if value.code not in _WITHOUT_TRACEBACK:
            previous(kind, value, traceback)
        before_exit(value)
        if sys.flags.interactive or hasattr(sys, "ps1"):
            print(f"shoal: {value}", file=sys.stderr)
            return
        # The interpreter would exit with 1; what it does before that is done here, so that our line is the last.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        print(f"shoal: {value}", file=sys.stderr, flush=True)
        os._exit(value.exit_code)

    hook.before_exit = before_exit
    sys.excepthook = hook
