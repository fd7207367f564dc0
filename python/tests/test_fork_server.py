"""Members of a run are forked from one process that has imported PyTorch and Shoal, those that come in a lost member's place too (`shoal run --on-peer-lost rejoin`), and
nothing else is different.

Scripts here see their launcher's server as people do, by the name of the process: `shoal-forks` once it is ready."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pool import environment, launch, program
from test_rejoin import KILL, SCRIPT, STOP, run, undisturbed  # noqa: F401

PATIENCE = 60

SERVER = f"""
import os, time
def servers():
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            name, stat = (open(f"/proc/{{pid}}/{{what}}").read() for what in ("comm", "stat"))
        except OSError:
            continue
        if name == "shoal-forks\\n" and int(stat.rpartition(")")[2].split()[1]) == os.getppid():
            found.append(int(pid))
    return found

def await_server(but=None):
    until = time.monotonic() + {PATIENCE}
    while not (found := [pid for pid in servers() if pid != but]):
        assert time.monotonic() < until, "no server"
        time.sleep(0.01)
    return found[0]
"""

# As test_rejoin has it.
TELLING = SERVER + SCRIPT.replace(
    "shoal.init()", "shoal.init()\nprint('came', shoal.rank(), 'SHOAL_GENERATION' in os.environ, 'shoal.fork_server' in sys.modules, flush=True)")


def came(said):
    """Of those who came in lost places: whether they were forked."""
    return [line.split()[-1] == "True" for line in said.splitlines() if "came" in line and line.split()[-2] == "True"]


FAULTS = {
    "backward": [(1, 4, "backward", KILL)],
    "rank 0, who has just come": [(0, 3, "step", KILL), (0, 4, "begin", KILL)],
    "two at once": [(1, 7, "step", KILL), (2, 7, "step", KILL)],
    "as it arrives": [(1, 4, "step", KILL), (1, 0, "arriving", KILL)],
}
SELDOM = ("as it arrives", "backward")


@pytest.mark.parametrize("faults", [pytest.param(each, id=name, marks=[pytest.mark.slow] if name in SELDOM else []) for name, each in FAULTS.items()])
def test_who_comes_is_forked_and_nothing_is_different(tmp_path, undisturbed, faults):  # noqa: F811
    course, plan = undisturbed
    told, said = run(tmp_path, faults, plan, script=TELLING)
    assert told == 3 * [course], said
    assert came(said) == [True] * len(faults), said
    assert all(f"[{rank}] came {rank} " in said for rank, _, _, _ in faults), "behind its prefix"


@pytest.mark.slow
def test_twenty_kills_and_each_time_one_is_forked(tmp_path):
    moments = ["begin", "backward", "step", "stepped"]
    course, _ = run(tmp_path, members=4, steps=45)
    plan, = tmp_path.glob("run-0/runs/*/plan.json")
    told, said = run(tmp_path, [(i * 7 % 4, 2 * i + 1, moments[i % 4], KILL) for i in range(20)], str(plan), members=4, steps=45, script=TELLING)
    assert told == course, said
    assert came(said) == [True] * 20


def before_the_loss(what, by=1, step=4):
    """TELLING, in which the member that is to be lost does this first, or another one before."""
    ours = f"if shoal.rank() == {by} and state.step == {step} and 'SHOAL_GENERATION' not in os.environ:\n        {what}\n    "
    return TELLING.replace('fault("begin", state.step)', ours + 'fault("begin", state.step)')


def test_a_server_that_was_killed_is_started_again(tmp_path, undisturbed):  # noqa: F811
    course, plan = undisturbed
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, script=before_the_loss("server = await_server(); os.kill(server, 9); await_server(but=server)"))
    assert told == 3 * [course], said
    assert came(said) == [True], said
    assert "starts cold" not in said


LATE = "import threading; server = await_server(); os.kill(server, 19); threading.Timer(7, os.kill, (server, 18)).start()"


@pytest.mark.slow
@pytest.mark.parametrize(("what", "by", "step"), [(f"os.kill(await_server(), {KILL})", 1, 4), (f"os.kill(await_server(), {STOP})", 1, 4), (LATE, 0, 3)],
                         ids=["killed", "stopped", "on again when the launcher has given it up"])
def test_where_no_server_answers_the_place_is_taken_cold(tmp_path, undisturbed, what, by, step):  # noqa: F811
    course, plan = undisturbed
    script = before_the_loss(what, by, step)
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, script=script)
    assert told == 3 * [course], said
    assert came(said) == [False], said


def at_the_start_of_python(folder, text):
    """Variables with which each server of a run does this first."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(f"import os, sys, time\nif 'serve(' in ' '.join(sys.orig_argv):\n    {text}\n")
    return {"PYTHONPATH": os.pathsep.join([str(site), environment()["PYTHONPATH"]]), "PYTHONDONTWRITEBYTECODE": "1"}


def test_servers_that_always_end_are_given_up_and_all_start_cold(tmp_path, undisturbed):  # noqa: F811
    """The member that is to be lost waits until the launcher has had enough of them."""
    course, plan = undisturbed
    notes = tmp_path / "ended"
    notes.mkdir()
    variables = at_the_start_of_python(tmp_path, f"print('no room', file=sys.stderr, flush=True); open(os.path.join({str(notes)!r}, str(os.getpid())), 'x').close(); os._exit(1)")
    waits = f"until = time.monotonic() + {PATIENCE}\n        while len(os.listdir({str(notes)!r})) < 3:\n            assert time.monotonic() < until\n            time.sleep(0.01)"
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, script=before_the_loss(waits), variables=variables)
    assert told == 3 * [course], said
    assert came(said) == [False], said
    assert "shoal: members start cold, since nothing can be forked here: no room (--cold leaves out to try)\n" in said, said
    assert said.count("no room") == 1 + said.count("shoal: the process of which members are forked ended 3 times (no room): who comes in a lost member's place starts cold"), said


@pytest.mark.slow
def test_none_is_kept_where_none_is_wanted(tmp_path, undisturbed):  # noqa: F811
    course, plan = undisturbed
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, options=["--cold"], script=before_the_loss("assert not servers()"))
    assert told == 3 * [course], said
    assert came(said) == [False], said


def start(folder, text, members=3, variables=None, flags=None):
    (folder / "member.py").write_text(text)
    return launch(members, [sys.executable, "member.py", "a b", "-u"], variables, flags, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_members_are_children_of_their_own_and_the_server_goes(tmp_path):
    text = SERVER + f"""
import json, multiprocessing, numpy, random, sys, torch
def is_child(pid):
    try:
        return int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1]) == os.getppid()
    except OSError:
        return False
until = time.monotonic() + {PATIENCE}
while servers():
    assert time.monotonic() < until, "the server stays"
    time.sleep(0.01)
with open("/proc/self/cmdline") as words:
    said = words.read().rstrip("\\0").split("\\0")
open_files = [os.readlink(f"/proc/self/fd/{{number}}").split(":")[0] for number in "012"]
print("told", json.dumps([os.environ["SHOAL_RANK"], os.getpgid(0) == os.getpid(), is_child(os.getpid()), said[1:], sys.argv, "shoal.fork_server" in sys.modules, open_files]))
for drawn in numpy.random.rand(), random.random(), torch.rand(1).item(), torch.initial_seed(), multiprocessing.current_process().authkey.hex():
    print("drawn", drawn)
"""
    with start(tmp_path, text) as launcher:
        said = launcher.communicate(timeout=PATIENCE)[0]
    assert launcher.returncode == 0, said
    told = sorted(json.loads(line.split("told ")[1]) for line in said.splitlines() if "told " in line)
    words = ["member.py", "a b", "-u"]
    assert told == [[str(rank), True, True, words, words, True, ["/dev/null", "pipe", "pipe"]] for rank in range(3)], said
    assert len({line.split("drawn")[1] for line in said.splitlines() if "drawn" in line}) == 3 * 5, said


def test_what_imports_say_is_said_once(tmp_path):
    with start(tmp_path, "print('member')", variables=at_the_start_of_python(tmp_path, "print('out'); print('err', file=sys.stderr, flush=True)")) as launcher:
        said = launcher.communicate(timeout=PATIENCE)[0]
    assert launcher.returncode == 0 and sorted(line for line in said.splitlines() if line.startswith("[")) == ["[0] err", "[0] member", "[0] out", "[1] member", "[2] member"], said


UNFIT = {
    "imports have started threads": "import threading; threading.Thread(target=time.sleep, args=(1000,)).start()",
    "imports have opened a device": "kept = os.open('nvidia0', os.O_RDONLY); os.readlink = lambda _: '/dev/nvidia0'",
    "it fails": "print('it fails', file=sys.stderr, flush=True); os._exit(3)",
    "something holds the socket": "import subprocess; subprocess.Popen(['sleep', '1000']); print('something holds the socket', file=sys.stderr, flush=True); os._exit(3)",
}


@pytest.mark.parametrize("why", UNFIT)
def test_members_start_cold_where_the_server_cannot_fork(tmp_path, why):
    (tmp_path / "nvidia0").touch()
    with start(tmp_path, "import sys\nprint('shoal.fork_server' in sys.modules)", variables=at_the_start_of_python(tmp_path, UNFIT[why])) as launcher:
        said = launcher.communicate(timeout=PATIENCE)[0]
    assert launcher.returncode == 0 and sorted(line for line in said.splitlines() if line.startswith("[")) == [f"[{rank}] False" for rank in range(3)], said
    assert f"shoal: members start cold, since nothing can be forked here: {why} (--cold leaves out to try)\n" in said and len(said.splitlines()) == 5, said


def test_a_python_behind_a_wrapper(tmp_path):
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\n{sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    (tmp_path / "member.py").write_text("import sys\nprint('shoal.fork_server' in sys.modules)")
    with launch(2, [str(wrapper), "member.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as launcher:
        said = launcher.communicate(timeout=PATIENCE)[0]
    assert launcher.returncode == 0 and {"[0] True", "[1] True"} <= set(said.splitlines()), said


def test_a_run_that_is_told_to_end_while_the_server_imports(tmp_path):
    variables = at_the_start_of_python(tmp_path, "open('importing', 'x').close(); time.sleep(1000)")
    with start(tmp_path, "print('never')", variables=variables) as launcher:
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "importing").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        launcher.send_signal(signal.SIGINT)
        said = launcher.communicate(timeout=PATIENCE)[0]
    assert launcher.returncode == 128 + signal.SIGINT and "never" not in said and "Traceback" not in said, said


def test_a_killed_launcher_leaves_no_server(tmp_path):
    (tmp_path / "train.py").write_text(SERVER + "print('server', await_server(), flush=True)\ntime.sleep(1000)\n")
    command = [program(), "run", "-n", "1", "--on-peer-lost", "rejoin", "--", sys.executable, "train.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as launcher:
        server = int(launcher.stdout.readline().split("server ")[1])
        launcher.send_signal(signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while is_there(server):
        assert time.monotonic() < until, "it outlived its launcher"
        time.sleep(0.01)


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_state_goes_to_none_but_who_came(tmp_path):
    """16 MB of state beside 0.2 MB of gradients: by the bytes that members have had from others since the step in which two are lost."""
    counts = "received = lambda: sum(link['received'] for link in shoal.session.current().links())\nbefore = 0\n"
    since = "if state.step == 4 and 'SHOAL_GENERATION' not in os.environ:\n        before = received()\n    fault(\"begin\", state.step)"
    script = SCRIPT.replace("losses=[]", "losses=[], ballast=torch.arange(4e6)").replace('fault("begin", state.step)', since).replace(
        "while state.step", counts + "while state.step").replace(
        'print("told"', 'assert state.ballast.equal(torch.arange(4e6))\nprint("got", json.dumps([shoal.rank(), received() - before]), flush=True)\nprint("told"')
    told, said = run(tmp_path, [(1, 4, "step", KILL), (3, 4, "step", KILL)], members=4, steps=7, script=script)
    assert len(told) == 4 and all(one == told[0] for one in told), said
    got = dict(json.loads(line.split("got ")[1]) for line in said.splitlines() if "got " in line)
    state = 16_000_000
    assert min(got[1], got[3]) > state and max(got[0], got[2]) < 0.8 * state, got
