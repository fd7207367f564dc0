"""A process of which `shoal run` forks the members of this machine: it has imported PyTorch and this package once for all (the launcher's half is app/fork_server.h).

It is started as `python [FLAGS] -c "from shoal import fork_server; ..." SCRIPT ARGUMENTS`, or `-m MODULE ARGUMENTS` or `-c CODE ARGUMENTS`, with the flags and words of the command and the
environment of a member but for its rank. Its standard input is a socket of the launcher's. One byte there says that it is ready. A request is its length (4 bytes), with the
descriptors of the member's two outputs, and then zero-terminated words: network namespace, host name, and NAME=VALUE for each variable of that member. The answer is a line: its
number, or what it could not do. The end of the socket means that nobody needs it any more.

A member runs the script, module or code as the interpreter would have: as `__main__` with its names, `sys.argv`, an empty standard input, the same status and the same
traceback at the end; `ps` shows the command's words. What is left different from a cold start: two frames of this file below the script's in dumps of the stack, functions that
the script has given to atexit before it imports shoal run before shoal's and not after, and what a script changes before it imports torch comes too late. Of these, variables
that torch and its libraries read as they are imported are seen: then the process is started anew, cold, with the same number. Hashes of strings and the addresses of what was
imported are those of the other members, and what was imported is no garbage (`gc.freeze`).
"""

import ctypes
import gc
import importlib.machinery
import io
import os
import runpy
import socket
import struct
import sys
import threading
import warnings

import numpy
import torch  # noqa: F401  what members are forked for

from . import _C, session

_READY = b"\6"
_NAME = "shoal-forks"  # of the process
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/")  # who has opened one must not fork
_READ_BY_IMPORTS = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH_", "PYTORCH_")


def serve() -> None:
    """Forks members as the launcher asks for them. Returns in each of these, when its script has."""
    words = sys.argv[1:]
    _import_for_optimizers(words)
    _refuse_if_unfit()
    launcher = socket.socket(fileno=os.dup(0))
    _redirect(0, os.open(os.devnull, os.O_RDONLY))
    of_python = _name_of_process()
    parent = os.getppid()
    gc.collect()
    gc.freeze()  # what members share with this process stays shared
    launcher.sendall(_READY)
    _name_process(_NAME)
    while True:
        request = _receive(launcher)
        if request is None:
            os._exit(0)
        if _fork(launcher, parent, *request):
            break
    _name_process(of_python)
    _be_main(words)


def _import_for_optimizers(words: list[str]) -> None:
    """They import it at their first use, which is half of what torch costs."""
    if words[0] == "-m":
        needed = True
    elif words[0] == "-c":
        needed = "optim" in words[1]
    else:
        try:
            with open(words[0], "rb") as script:
                needed = b"optim" in script.read()
        except OSError:
            needed = False
    if needed:
        import torch._dynamo  # noqa: F401


def _refuse_if_unfit() -> None:
    """A fork has one thread, and no use for a device that its parent has opened."""
    opened = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            opened.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # the one by which they are listed
            pass
    if threading.active_count() > 1:
        raise SystemExit("imports have started threads")
    if any(name.startswith(_DEVICES) for name in opened):
        raise SystemExit("imports have opened a device")


def _receive(launcher: socket.socket):
    header, descriptors, _, _ = socket.recv_fds(launcher, 4, 2)
    if len(header) < 4:
        return None
    left, told = struct.unpack("=I", header)[0], b""
    while len(told) < left:
        piece = launcher.recv(left - len(told))
        if not piece:
            return None
        told += piece
    network, name, *variables = (os.fsdecode(word) for word in told[:-1].split(b"\0"))
    return descriptors, network, name, dict(variable.split("=", 1) for variable in variables)


def _fork(launcher: socket.socket, parent: int, outputs: list[int], network: str, name: str, environment: dict[str, str]) -> bool:
    """True in the member. The process between the two ends at once, so that the launcher, which adopts orphans, is the member's parent."""
    answer, answers = os.pipe()
    goes, go = os.pipe()
    between = _forked()
    if between == 0:
        try:
            if _forked() != 0:
                os._exit(0)
        except OSError as error:
            os.write(answers, f"fork: {error.strerror}\n".encode())
            os._exit(1)
        for each in (answer, go, launcher.fileno()):
            os.close(each)
        launcher.detach()
        os.read(goes, 1)  # until it is the launcher's child
        failed = _C.become_member(network, name, parent)
        os.write(answers, f"{failed or os.getpid()}\n".encode())
        if failed:
            os._exit(127)
        os.close(answers)
        os.close(goes)
        for number, output in enumerate(outputs, 1):
            _redirect(number, output)
        os.environ.update(environment)
        numpy.random.seed()  # as in a process of its own; random's does so by itself, and torch's is the same in all
        return True
    for each in (answers, goes, *outputs):
        os.close(each)
    os.waitpid(between, 0)
    os.write(go, b"\0")
    os.close(go)
    said = b""
    while piece := os.read(answer, 1 << 12):
        said += piece
    os.close(answer)
    launcher.sendall(said or b"fork: it has ended\n")
    return False


def _forked() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: NumPy's, which see to it themselves
        return os.fork()


def _be_main(words: list[str]) -> None:
    sys.orig_argv = [*sys.orig_argv[:sys.orig_argv.index("-c")], *words]
    _show_command(sys.orig_argv)
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


def _run(words: list[str], main: dict) -> None:
    if words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        runpy._run_module_as_main(words[1])  # as the interpreter does
        return
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec", dont_inherit=True), main)
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


def _redirect(number: int, to: int) -> None:
    os.dup2(to, number)
    os.close(to)


def _show_command(words: list[str]) -> None:
    """`ps` reads a process's words where the kernel laid them, and the command's are fewer than these."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start, arg_end: 48th and 49th of all
    text = b"".join(os.fsencode(word) + b"\0" for word in words)
    if 0 < begin and len(text) <= end - begin:
        ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def _name_of_process() -> str:
    with open("/proc/self/comm") as file:
        return file.read().strip()


def _name_process(name: str) -> None:
    with open("/proc/self/comm", "w") as file:
        file.write(name)
