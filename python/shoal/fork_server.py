"""A process of which `shoal run` forks the members of this machine: it has imported PyTorch and this package once for all (the launcher's half is app/fork_server.h).

It is started as `python [FLAGS] -c "from shoal import fork_server; ..." SCRIPT ARGUMENTS`, or `-m MODULE ARGUMENTS` or `-c CODE ARGUMENTS`, with the flags and words of the command and the
environment of a member but for its rank. Its standard input is a socket of the launcher's. One byte there says that it is ready. A request is its length (4 bytes), with three
descriptors, the member's outputs and a socket of its own, and then zero-terminated words: the launcher's number, network namespace, host name, and NAME=VALUE for each variable of that
member. The member says a line there, its number or what it could not do, and goes on when it has been answered a byte: the launcher may have given it up, or this process. The end of the
launcher's socket means that nobody needs this process any more.

A member runs the script, module or code as the interpreter would have: as `__main__` with its names, `sys.argv`, an empty standard input, the same status and the same
traceback at the end; `ps` shows the command's words. What is left different from a cold start: docs/launchers/shoal-run.md.
"""

import ctypes
import gc
import importlib.machinery
import io
import multiprocessing
import os
import pkgutil
import runpy
import signal
import socket
import struct
import sys
import threading
import warnings

import numpy
import torch

from . import _C

_READY = b"\6"
_NAME = "shoal-forks"  # of the process
_DEVICES = tuple("/dev/" + name for name in ("nvidia", "kfd", "dri/", "accel", "vfio", "davinci", "habanalabs"))  # who has opened one must not fork
_READ_BY_IMPORTS = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH", "PYTORCH_", "TRITON_", "NPY_")
_READ_LATER = ("PYTORCH_NVML_BASED_CUDA_CHECK",)
_started_in = ""


def serve(asked: int) -> None:
    """Forks members as the launcher asks for them, by that descriptor. Returns in each of these, when its script has."""
    global _started_in
    _started_in = os.getcwd()
    words = sys.argv[1:]
    _import_for_optimizers(words)
    _refuse_if_unfit()
    launcher = socket.socket(fileno=asked)
    of_python = _name_of_process()
    gc.collect()
    gc.freeze()  # what members share with this process stays shared
    launcher.sendall(_READY)
    _name_process(_NAME)
    while (request := _receive(launcher)) is not None:
        if (environment := _fork(launcher, *request)) is not None:
            _name_process(of_python)
            return _be_main(words, environment)
    os._exit(0)


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
        _refuse("imports have started threads")
    if any(name.startswith(_DEVICES) for name in opened):
        _refuse("imports have opened a device")


def _refuse(why: str) -> None:
    print(why, file=sys.stderr, flush=True)
    os._exit(1)  # threads would be waited for


def _receive(launcher: socket.socket):
    header, descriptors, _, _ = socket.recv_fds(launcher, 4, 3)
    if len(header) < 4:
        return None
    left, told = struct.unpack("=I", header)[0], b""
    while len(told) < left:
        piece = launcher.recv(left - len(told))
        if not piece:
            return None
        told += piece
    parent, network, name, *variables = (os.fsdecode(word) for word in told[:-1].split(b"\0"))
    return descriptors, int(parent), network, name, dict(variable.split("=", 1) for variable in variables)


def _fork(launcher: socket.socket, descriptors: list[int], parent: int, network: str, name: str, environment: dict[str, str]) -> dict[str, str] | None:
    """In the member its environment. The process between the two ends at once, so that the launcher, which adopts orphans, is the member's parent."""
    goes, go = os.pipe()
    try:
        between = _forked()
        if between == 0 and _forked() != 0:
            os._exit(0)
    except OSError:  # no process may be started: the launcher hears that nobody says his number
        os._exit(1)
    if between == 0:
        os.close(go)
        if not os.read(goes, 1):  # the launcher's child from here on
            os._exit(0)
        os.close(goes)
        launcher.close()
        *outputs, word = descriptors
        _become_member(socket.socket(fileno=word), parent, network, name)
        for number, output in enumerate(outputs, 1):
            os.dup2(output, number)
            os.close(output)
        return environment
    os.waitpid(between, 0)
    try:
        os.write(go, b"\0")
    except BrokenPipeError:
        pass
    for each in (goes, go, *descriptors):
        os.close(each)
    return None


def _become_member(word: socket.socket, parent: int, network: str, name: str) -> None:
    """As app/spawn.cc does it between fork and exec."""
    PR_SET_PDEATHSIG = 1
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that
        os._exit(128 + signal.SIGKILL)
    failed = _C.enter_host_space(network, name)
    word.sendall(f"{failed or os.getpid()}\n".encode())
    if failed or not word.recv(1):
        os._exit(127)
    word.close()


def _forked() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: NumPy's, which see to it themselves
        return os.fork()


def _be_main(words: list[str], environment: dict[str, str]) -> None:
    sys.orig_argv = [*sys.orig_argv[:sys.orig_argv.index("-c")], *words]
    _show_command(sys.orig_argv)
    read = {name: os.environ.get(name) for name in environment if _is_read_by_imports(name)}
    os.environ.update(environment)
    if any(os.environ[name] != value for name, value in read.items()):
        _start_cold()
    numpy.random.seed()  # as in a process of its own; random's does so by itself
    torch.default_generator.seed()
    multiprocessing.current_process().authkey = os.urandom(32)
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
    if pkgutil.get_importer(script):  # a folder or an archive, which may be named so
        _start_cold()
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


def _is_read_by_imports(name: str) -> bool:
    return name.startswith(_READ_BY_IMPORTS) and name not in _READ_LATER


def _start_cold() -> None:
    os.chdir(_started_in)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _watch_environment() -> None:
    """Until the script imports torch or this package: a change that it makes before, a cold process's imports would see."""
    member, main = os.getpid(), threading.main_thread()
    plain = os.putenv, os.unsetenv
    kinds = {module: type(module) for module in (torch, sys.modules[__package__])}

    class Imported(type(torch)):
        def __getattribute__(self, name):  # `import torch` looks at its __spec__
            os.putenv, os.unsetenv = plain
            for module, kind in kinds.items():
                module.__class__ = kind
            return getattr(self, name)

    def watched(change):
        def changed(name, *value):
            text = os.fsdecode(name)
            ours = os.getpid() == member and threading.current_thread() is main  # and not what it has forked
            if ours and _is_read_by_imports(text) and os.environ.get(text) != (os.fsdecode(value[0]) if value else None):
                _start_cold()
            return change(name, *value)
        return changed

    os.putenv, os.unsetenv = watched(os.putenv), watched(os.unsetenv)  # os.environ calls them
    for module in kinds:
        module.__class__ = Imported


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
