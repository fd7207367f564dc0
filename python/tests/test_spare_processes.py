"""What a spare runs is what a cold process runs: the same words on both outputs, the same status, for scripts and modules that end in every way.

Each case is run as `python [FLAGS] ...` and by a spare with the launcher's part played here; the spare's words are those of a real one, read from /proc."""

import os
import socket
import subprocess
import sys

import pytest

from pool import environment, program
from test_spares import PATIENCE, SPARES

TOLD = {"SHOAL_RANK": "1", "OF_THE_MEMBER": "yes = no"}

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
    "Ctrl-C": ("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass", [], ["script.py"]),
    "TERM": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nwhile True: pass", [], ["script.py"]),
    "no script": ("", [], ["none.py"]),
    "no module": ("", [], ["-m", "package.none"]),
    "processes of its own": (POOL, [], ["script.py"]),
    "threads and exit handlers": (LAST, [], ["script.py"]),
    "what torch reads as it is imported": (THREADS, [], ["script.py"]),
}


@pytest.fixture(scope="module")
def words_of_spare(tmp_path_factory):
    """Of a real one: what stands between Python's flags and the command's words."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "train.py").write_text(SPARES + "spare, = await_spares()\nopen('words', 'wb').write(open(f'/proc/{spare}/cmdline', 'rb').read())\n")
    command = [program(), "run", "-n", "1", "--on-peer-lost", "rejoin", "--", sys.executable, "-u", "train.py", "word"]
    subprocess.run(command, cwd=folder, env=environment(), check=True, timeout=PATIENCE)
    words = os.fsdecode((folder / "words").read_bytes()).split("\0")
    assert words[:3] == [sys.executable, "-u", "-c"] and words[4:] == ["train.py", "word", ""]
    return words[2:4]


def write(folder, script):
    (folder / "folder").mkdir()
    (folder / "package").mkdir()
    for name in ("script.py", "package/script.py", "package/__main__.py"):
        (folder / name).write_text(script)
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "beside.py").write_text("")
    (folder / "folder" / "link.py").symlink_to("../script.py")


def as_spare(command, folder, told=TOLD):
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen(command, cwd=folder, env=environment(), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as spare:
        theirs.close()
        ours.settimeout(PATIENCE)
        assert ours.recv(1) == b"\6", spare.communicate()
        if told is not None:
            ours.sendall("".join(f"{name}={value}\0" for name, value in told.items()).encode() + b"\0")
        ours.shutdown(socket.SHUT_WR)
        out, err = spare.communicate(timeout=PATIENCE)
        return spare.returncode, out, err


NIGHTLY = ("safe path", "a package", "from another folder, by a link, with flags", "what torch reads as it is imported", "no script", "sys.exit", "what a module sees",
           "an error of Shoal", "sys.exit with words", "an exception of a module", "its own hook for exceptions", "a syntax error", "no module")


@pytest.mark.parametrize(("script", "flags", "words"), [pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in NIGHTLY else [])
                                                        for name, case in CASES.items()])
def test_it_runs_and_ends_as_a_cold_process(tmp_path, words_of_spare, script, flags, words):
    write(tmp_path, script)
    cold = subprocess.run([sys.executable, *flags, *words], cwd=tmp_path, env={**environment(), **TOLD}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    code, out, err = as_spare([sys.executable, *flags, *words_of_spare, *words], tmp_path)
    assert (code, out, err) == (cold.returncode, cold.stdout, cold.stderr)
    assert "spare" not in err and (out or err or code)


def test_who_is_not_needed_ends_without_a_word(tmp_path, words_of_spare):
    write(tmp_path, SEES)
    assert as_spare([sys.executable, *words_of_spare, "script.py"], tmp_path, None) == (0, "", "")


def test_a_message_that_was_cut_short_is_none(tmp_path, words_of_spare):
    write(tmp_path, SEES)
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen([sys.executable, *words_of_spare, "script.py"], cwd=tmp_path, env=environment(), stdin=theirs, stdout=subprocess.PIPE) as spare:
        theirs.close()
        ours.sendall(b"SHOAL_RANK=1\0OF_THE_MEM")
        ours.shutdown(socket.SHUT_WR)
        assert spare.communicate(timeout=PATIENCE)[0] == b"" and spare.returncode == 0
