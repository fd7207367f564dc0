"""A process that waits to be a member: under `shoal run --on-peer-lost rejoin` (or regrow) one on each host has imported PyTorch and this package when a member is lost, and takes
its place (the launcher's half is app/spares.h).

It is started as `python [FLAGS] -c "from shoal import spare; ..." SCRIPT ARGUMENTS`, or `-m MODULE ARGUMENTS`, with the flags and words of the command and the
environment of a member but for its rank. Its standard input is a socket of the launcher's: one byte there says that it is ready; what comes is the environment
of the member that it is to be, NAME=VALUE and a zero byte each, and one zero byte more. An end without that means that nobody needs it any more.

Then it runs the script or module as the interpreter would have: as `__main__` with its names, `sys.argv`, an empty standard input, the same status and the same
traceback at the end. What is left different from a cold start: two frames of this file below the script's in dumps of the stack, `ps` shows the words above, functions that
the script has given to atexit before it imports shoal run before shoal's and not after, and what a script changes before it imports torch comes too late. Of these, variables
that torch and its libraries read as they are imported are seen: then the process is started anew, cold, with the same number.
"""

import importlib.machinery
import io
import os
import runpy
import sys

import torch._dynamo  # noqa: F401  optimizers import it at their first use, which is half of what torch costs

from . import session

_SOCKET = 0
_READY = b"\6"
_NAME = "shoal-spare"  # of the process, while it is one
_READ_BY_IMPORTS = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH_", "PYTORCH_")


def stand_by() -> None:
    """Returns when the script has; whoever is not needed ends here."""
    words = sys.argv[1:]
    of_python = _name_of_process()
    os.write(_SOCKET, _READY)
    _name_process(_NAME)
    environment = _told()
    if environment is None:
        os._exit(0)
    _name_process(of_python)
    _empty_input()
    os.environ.update(environment)
    sys.orig_argv = [*sys.orig_argv[:sys.orig_argv.index("-c")], *words]
    _watch_environment()
    main = sys.modules["__main__"].__dict__
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]
    try:
        _run(words, main)
    except SystemExit:
        raise
    except BaseException as error:
        _show_from(error, error.__traceback__)
        raise


def _told() -> dict[str, str] | None:
    told = b""
    while piece := os.read(_SOCKET, 1 << 16):
        told += piece
    if not told.endswith(b"\0\0"):
        return None
    return dict(os.fsdecode(variable).split("=", 1) for variable in told[:-2].split(b"\0"))


def _run(words: list[str], main: dict) -> None:
    if words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        runpy._run_module_as_main(words[1])  # as the interpreter does
        return
    sys.argv = words
    script = os.path.join(os.getcwd(), words[0])
    try:
        with io.open_code(script) as file:
            text = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {script!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    main.update(__file__=script, __cached__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", script))
    exec(compile(text, script, "exec", dont_inherit=True), main)


def _show_from(error: BaseException, trace) -> None:
    """Nobody is shown the frames between the interpreter and the script, which a cold process does not have."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    shown = sys.excepthook

    def hook(kind, value, _):
        shown(kind, value.with_traceback(trace), trace)

    sys.excepthook = hook


def _watch_environment() -> None:
    os.putenv, os.unsetenv = _watched(os.putenv), _watched(os.unsetenv)  # os.environ calls them


def _watched(change):
    def changed(name, *value):
        text = os.fsdecode(name)
        if text.startswith(_READ_BY_IMPORTS) and session._session is None and os.environ.get(text) != (os.fsdecode(value[0]) if value else None):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
        return change(name, *value)
    return changed


def _empty_input() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _name_of_process() -> str:
    with open("/proc/self/comm") as file:
        return file.read().strip()


def _name_process(name: str) -> None:
    with open("/proc/self/comm", "w") as file:
        file.write(name)
