"""What a forked member runs is what a cold process runs: the same words on both outputs, the same status, for scripts and modules that end in every way.

Each case is run as `python [FLAGS] ...` and by a fork of a server with the launcher's part played here; the server's words are those of a real one, read from /proc."""

import ctypes
import os
import socket
import struct
import subprocess
import sys

import pytest

from pool import environment, program
from test_fork_server import PATIENCE, SERVER

TOLD = {"SHOAL_RANK": "0", "SHOAL_SIZE": "1", "OF_THE_MEMBER": "yes = no"}

SEES = """
import os, sys
main = sys.modules["__main__"]
print(sys.argv, sys.orig_argv, sys.path[0], sys.flags, sys.warnoptions)
print(__name__, __file__, __package__, __spec__ and (__spec__.name, __spec__.origin), type(__loader__), main.__dict__ is globals(), sorted(globals()))
print(os.getcwd(), repr(sys.stdin.read()), os.environ["SHOAL_RANK"], os.environ["OF_THE_MEMBER"], os.popen("echo $OF_THE_MEMBER").read())
"""
RAISES = """
import shoal
def inner(value):
    raise ValueError(f"not {value}")
def outer():
    try:
        inner(1)
    except ValueError as error:
        raise KeyError("other") from error
outer()
"""
POOL = """
import multiprocessing, pickle, sys
class Kept:
    pass
def square(x):
    return x * x, __name__, multiprocessing.parent_process() is not None
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(square, range(3)))
    print(type(pickle.loads(pickle.dumps(Kept()))) is Kept)
"""
LAST = """
import atexit, threading, time
import shoal
atexit.register(print, "at exit", flush=True)
threading.Thread(target=lambda: (threading.main_thread().join(), print("thread", flush=True))).start()
print("last line", flush=True)
"""
THREADS = "import os, sys\nos.environ['OMP_NUM_THREADS'] = '3'\nprint('torch' in sys.modules)\nimport torch\nprint(torch.get_num_threads())\n"

CHILDREN = """
import multiprocessing, os, sys
def change():
    os.environ["OMP_NUM_THREADS"] = "3"
if __name__ == "__main__":
    print("began", flush=True)
    with multiprocessing.get_context("fork").Pool(1, initializer=change) as pool:
        print(pool.apply(os.getenv, ("OMP_NUM_THREADS",)))
    import torch
    change()
    print("ends", os.environ["OMP_NUM_THREADS"])
"""
AWAY = """
import os
os.chdir("/")
os.environ["OMP_NUM_THREADS"] = "3"
import torch
print(torch.get_num_threads(), __file__, os.getcwd())
"""
HOOK = """
import sys
sys.excepthook = lambda *_: print("mine", file=sys.stderr)
import shoal
shoal.init()
if sys.argv[1] == "error":
    raise shoal.Error("no room")
raise ValueError("none")
"""

CASES = {
    "what a script sees": (SEES, [], ["script.py", "a b", "--flag", "-m", ""]),
    "from another folder, by a link, with flags": (SEES, ["-u", "-O", "-W", "ignore", "-Xdev"], ["./folder/link.py"]),
    "safe path": (SEES, ["-P"], ["script.py"]),
    "what a module sees": ("from . import beside\nprint(beside)\n" + SEES, [], ["-m", "package.script", "word", "-u"]),
    "a package": (SEES, ["-B"], ["-m", "package"]),
    "sys.exit": ("import sys\nsys.exit(3)", [], ["script.py"]),
    "sys.exit with words": ("import sys\nsys.exit('no such file')", [], ["script.py"]),
    "an exception": (RAISES, [], ["script.py"]),
    "an exception of a module": (RAISES, [], ["-m", "package.script"]),
    "its own hook for exceptions": ("import sys, traceback\nsys.excepthook = lambda *e: print('mine', *traceback.format_exception(*e))\n1 / 0", [], ["script.py"]),
    "an error of Shoal": ("import shoal\nfrom shoal.errors import mistake\nraise mistake('here', 'it is wrong')", [], ["script.py"]),
    "a syntax error": ("print('never')\n1 +\n", [], ["script.py"]),
    "Ctrl-C": ("import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass", [], ["script.py"]),
    "TERM": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nwhile True: pass", [], ["script.py"]),
    "code": ("", ["-u"], ["-c", SEES.replace("__file__", "'__file__' in globals()"), "word", "-c"]),
    "an exception of code": ("", [], ["-c", "import torch\ndef f(): 1 / 0\nf()"]),
    "what it forks and what comes later": (CHILDREN, [], ["script.py"]),
    "another folder before torch": (AWAY, [], ["script.py"]),
    "a folder that is named as a script": (SEES, [], ["package.py", "word"]),
    "a hook that was there before Shoal": (HOOK, [], ["script.py", "error"]),
    "and another error": (HOOK, [], ["script.py", "other"]),
    "no script": ("", [], ["none.py"]),
    "no module": ("", [], ["-m", "package.none"]),
    "processes of its own": (POOL, [], ["script.py"]),
    "threads and exit handlers": (LAST, [], ["script.py"]),
    "what torch reads as it is imported": (THREADS, [], ["script.py"]),
}


@pytest.fixture(scope="module")
def words_of_server(tmp_path_factory):
    """Of a real one: what stands between Python's flags and the command's words."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "train.py").write_text(SERVER + "open('words', 'wb').write(open(f'/proc/{await_server()}/cmdline', 'rb').read())\n")
    command = [program(), "run", "-n", "1", "--on-peer-lost", "rejoin", "--", sys.executable, "-u", "train.py", "word"]
    subprocess.run(command, cwd=folder, env=environment(), check=True, timeout=PATIENCE)
    words = os.fsdecode((folder / "words").read_bytes()).split("\0")
    assert words[:3] == [sys.executable, "-u", "-c"] and words[4:] == ["train.py", "word", ""]
    return words[2:4]


@pytest.fixture(scope="module", autouse=True)
def adopts_orphans():
    """As a launcher does."""
    PR_SET_CHILD_SUBREAPER = 36
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def write(folder, script):
    (folder / "folder").mkdir()
    (folder / "package").mkdir()
    for name in ("script.py", "package/script.py", "package/__main__.py"):
        (folder / name).write_text(script)
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "beside.py").write_text("")
    (folder / "folder" / "link.py").symlink_to("../script.py")
    (folder / "package.py").symlink_to("package")


class Server:
    def __init__(self, command, folder):
        self.socket, theirs = socket.socketpair()
        self.process = subprocess.Popen(command, cwd=folder, env=environment(), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        theirs.close()
        self.socket.settimeout(PATIENCE)

    def __enter__(self):
        assert self.socket.recv(1) == b"\6", self.process.communicate()
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.said = self.process.communicate(timeout=PATIENCE)[0]

    def ask(self, variables, outputs, network="", name=""):
        """What the member says first, and its socket."""
        text = "".join(word + "\0" for word in (str(os.getpid()), network, name, *(f"{name}={value}" for name, value in variables.items()))).encode()
        word, of_member = socket.socketpair()
        word.settimeout(PATIENCE)
        with of_member:
            socket.send_fds(self.socket, [struct.pack("=I", len(text)) + text], [*outputs, of_member.fileno()])
        return word.makefile().readline().rstrip("\n"), word


def as_forked(command, folder, told=TOLD):
    with Server(command, folder) as server:
        (out, outs), (err, errs) = os.pipe(), os.pipe()
        said, word = server.ask(told, [outs, errs])
        member = int(said)
        assert os.getpgid(member) == member
        with word:
            word.sendall(b"\0")
        os.close(outs), os.close(errs)
        with open(out) as out, open(err) as err:
            said = out.read(), err.read()
        _, status = os.waitpid(member, 0)
    assert (server.process.returncode, server.said) == (0, "")
    return os.waitstatus_to_exitcode(status), *said


NIGHTLY = ("safe path", "a package", "from another folder, by a link, with flags", "what torch reads as it is imported", "no script", "sys.exit", "what a module sees",
           "an error of Shoal", "sys.exit with words", "an exception of a module", "its own hook for exceptions", "a syntax error", "no module")


@pytest.mark.parametrize(("script", "flags", "words"), [pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in NIGHTLY else [])
                                                        for name, case in CASES.items()])
def test_it_runs_and_ends_as_a_cold_process(tmp_path, words_of_server, script, flags, words):
    write(tmp_path, script)
    cold = subprocess.run([sys.executable, *flags, *words], cwd=tmp_path, env={**environment(), **TOLD}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    code, out, err = as_forked([sys.executable, *flags, *words_of_server, *words], tmp_path)
    assert (code, out, err) == (cold.returncode, cold.stdout, cold.stderr)
    assert "fork" not in err and (out or err or code)


def test_what_a_member_cannot_do_is_answered_and_who_is_not_wanted_any_more_is_none(tmp_path, words_of_server):
    write(tmp_path, "print('here')")
    with Server([sys.executable, *words_of_server, "script.py"], tmp_path) as server:
        out, outs = os.pipe()
        assert server.ask(TOLD, [outs, outs], "/run/netns/there-is-none", "host")[0] == "open its network namespace: No such file or directory"
        given_up, word = server.ask(TOLD, [outs, outs])
        word.close()
        assert os.waitstatus_to_exitcode(os.waitpid(int(given_up), 0)[1]) == 127
        member, word = server.ask(TOLD, [outs, outs])
        word.sendall(b"\0")
        os.close(outs)
        with open(out) as said:
            assert said.read() == "here\n"
        assert os.waitpid(int(member), 0)[1] == 0


def test_a_request_that_was_cut_short_is_none(tmp_path, words_of_server):
    write(tmp_path, SEES)
    with Server([sys.executable, *words_of_server, "script.py"], tmp_path) as server:
        server.socket.sendall(struct.pack("=I", 1000) + b"1\0\0\0SHOAL_RANK=1\0OF_THE_MEM")
    assert (server.process.returncode, server.said) == (0, "")
