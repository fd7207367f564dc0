"""Spares in a run (`shoal run --on-peer-lost rejoin`): whoever comes in a lost member's place was waiting with everything imported, and nothing else is different.

Scripts here see their launcher's spares as people do, by the name of the process: `shoal-spare` while it is ready."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pool import environment, program
from test_rejoin import KILL, SCRIPT, run, undisturbed  # noqa: F401

PATIENCE = 60

SPARES = f"""
import os, time
def spares():
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            name, stat = (open(f"/proc/{{pid}}/{{what}}").read() for what in ("comm", "stat"))
        except OSError:
            continue
        if name == "shoal-spare\\n" and int(stat.rpartition(")")[2].split()[1]) == os.getppid():
            found.append(int(pid))
    return found

def await_spares(count=1, but=()):
    until = time.monotonic() + {PATIENCE}
    while len(found := set(spares()) - set(but)) < count:
        assert time.monotonic() < until, "no spare"
        time.sleep(0.01)
    return found
"""

# As test_rejoin has it; each fault waits for as many spares as are kept.
WAITING = SPARES + SCRIPT.replace("strike = lambda", "await_spares(KEPT)\n        strike = lambda").replace(
    "shoal.init()", "shoal.init()\nprint('came', shoal.rank(), 'SHOAL_GENERATION' in os.environ, 'shoal.spare' in sys.modules, flush=True)")


def came(said):
    """Of those who came in lost places: whether they were spares."""
    return [line.split()[-1] == "True" for line in said.splitlines() if "came" in line and line.split()[-2] == "True"]


FAULTS = {
    "backward": (1, [(1, 4, "backward", KILL)]),
    "rank 0, a spare that has just come": (1, [(0, 3, "step", KILL), (0, 4, "begin", KILL)]),
    "two at once": (2, [(1, 7, "step", KILL), (2, 7, "step", KILL)]),
    "as it arrives": (1, [(1, 4, "step", KILL), (1, 0, "arriving", KILL)]),
}
SELDOM = ("two at once", "as it arrives", "backward")


@pytest.mark.parametrize(("kept", "faults"), [pytest.param(*each, id=name, marks=[pytest.mark.slow] if name in SELDOM else []) for name, each in FAULTS.items()])
def test_who_comes_was_a_spare_and_nothing_is_different(tmp_path, undisturbed, kept, faults):  # noqa: F811
    course, plan = undisturbed
    told, said = run(tmp_path, faults, plan, options=["--spares", str(kept)], script=WAITING.replace("KEPT", str(kept)))
    assert told == 3 * [course], said
    assert came(said) == [True] * len(faults), said
    assert all(f"[{rank}] came {rank} " in said for rank, _, _, _ in faults), "behind its prefix"


@pytest.mark.slow
def test_twenty_kills_and_each_time_a_spare(tmp_path):
    moments = ["begin", "backward", "step", "stepped"]
    course, _ = run(tmp_path, members=4, steps=45)
    plan, = tmp_path.glob("run-0/runs/*/plan.json")
    told, said = run(tmp_path, [(i * 7 % 4, 2 * i + 1, moments[i % 4], KILL) for i in range(20)], str(plan), members=4, steps=45, script=WAITING.replace("KEPT", "1"))
    assert told == course, said
    assert came(said) == [True] * 20


def test_a_spare_that_was_killed_is_replaced(tmp_path, undisturbed):  # noqa: F811
    course, plan = undisturbed
    kills = "if shoal.rank() == 1 and state.step == 4 and 'SHOAL_GENERATION' not in os.environ:\n        spare, = await_spares()\n        os.kill(spare, 9)\n        await_spares(but=[spare])\n"
    script = WAITING.replace("KEPT", "1").replace('fault("begin", state.step)', kills + '    fault("begin", state.step)')
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, script=script)
    assert told == 3 * [course], said
    assert came(said) == [True], said
    assert "spares ended" not in said


def test_spares_that_always_end_are_given_up_and_the_place_is_taken_cold(tmp_path, undisturbed):  # noqa: F811
    """A module that is loaded at the start of every Python ends each spare; the member that is to be lost waits until the launcher has had enough of them."""
    course, plan = undisturbed
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import os, sys\nif 'stand_by' in ' '.join(sys.orig_argv):\n    print('no room', file=sys.stderr, flush=True)\n"
                                           f"    open(os.path.join({str(site)!r}, f'ended-{{os.getpid()}}'), 'x').close()\n    os._exit(1)\n")
    waits = f"until = time.monotonic() + {PATIENCE}\n        while len(os.listdir({str(site)!r})) < 4:\n            assert time.monotonic() < until\n            time.sleep(0.01)\n        "
    script = WAITING.replace("await_spares(KEPT)\n        ", waits)
    variables = {"PYTHONPATH": os.pathsep.join([str(site), environment()["PYTHONPATH"]]), "PYTHONDONTWRITEBYTECODE": "1"}
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, script=script, variables=variables)
    assert told == 3 * [course], said
    assert came(said) == [False], said
    assert said.count("shoal: 3 spares ended before they were needed (no room): no more are kept, and who comes in a lost member's place starts cold") == 1, said


@pytest.mark.slow
def test_none_are_kept_where_none_are_wanted(tmp_path, undisturbed):  # noqa: F811
    course, plan = undisturbed
    told, said = run(tmp_path, [(1, 4, "begin", KILL)], plan, options=["--spares", "0"], script=WAITING.replace("await_spares(KEPT)", "assert not spares()"))
    assert told == 3 * [course], said
    assert came(said) == [False], said


def test_a_killed_launcher_leaves_no_spare(tmp_path):
    (tmp_path / "train.py").write_text(SPARES + "print('spare', *await_spares(), flush=True)\ntime.sleep(1000)\n")
    command = [program(), "run", "-n", "1", "--on-peer-lost", "rejoin", "--", sys.executable, "train.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as launcher:
        spare = int(launcher.stdout.readline().split("spare ")[1])
        launcher.send_signal(signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while is_there(spare):
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
