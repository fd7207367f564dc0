"""`shoal join`: members that join a run with tables while it goes on take part from a clock on, with a share of the rows; every increment counts once."""

import json
import os
import re
import subprocess
import sys
import threading

import pytest

from pool import environment, launch, program

# Every member says in each clock what it has done; in some clock it waits until the file `go-N` is there, so that a test knows what comes before what.
SCRIPT = """
import json, os, sys, time
import numpy as np, shoal

clocks, stops = int(sys.argv[1]), json.loads(sys.argv[2])
if "SHOAL_JOINS" in os.environ and os.path.exists("fault"):
    raise SystemExit(open("fault").read())
if "SHOAL_JOINS" in os.environ and os.path.exists("different"):
    os.environ["SHOAL_TIMEOUT"] = "77"
if "SHOAL_JOINS" in os.environ and os.path.exists("slow"):
    print("is slow", flush=True)
    while os.path.exists("slow"):
        time.sleep(0.01)
open(f"pid-{os.environ['SHOAL_RANK']}", "w").write(str(os.getpid()))
if "SHOAL_JOINS" in os.environ and os.path.exists("fatal"):
    os.unlink("fatal")
    shoal.rank()  # it has met the others, and has no table yet
    os.kill(int(open("pid-0").read()), 9)
counts = shoal.Table("counts", 4, dtype="int64", consistency=sys.argv[3])
seen = []

def work():
    seen.append([shoal.size(), counts.clock])
    while counts.clock < clocks:
        clock = counts.clock
        for stop, members in stops:
            if clock == stop and shoal.size() < members:
                print("stands at", clock, flush=True)
                while True:  # until others come, which ends it
                    counts.barrier()
                    time.sleep(0.01)
        counts.add(np.arange(20), np.full((20, 4), clock + 1))
        counts.tick()
    while not set(range(2, shoal.size())) <= {rank for of_part in counts.holders() for rank in of_part}:
        time.sleep(0.01)  # who joined is given rows meanwhile
    counts.barrier()
    return counts.read(np.arange(20)).tolist()

rows = shoal.again(work)
print("told", json.dumps([shoal.rank(), rows, seen]), flush=True)
"""


class Run:
    """A run of SCRIPT, whose lines are kept as they come."""

    def __init__(self, folder, members, stops, consistency="ssp:2", policy="rejoin", clocks=12, variables=None, cold=False):
        (folder / "count.py").write_text(SCRIPT)
        self.folder, self.members, self.clocks, self.lines = folder, members, clocks, []
        self.process = launch(members, [sys.executable, "count.py", str(clocks), json.dumps(stops), consistency], {"OMP_NUM_THREADS": "1", **(variables or {})},
                              ["--on-peer-lost", policy, *(["--cold"] if cold else [])],
                              cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._news = threading.Condition()
        self._over = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line)
                self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()

    def wait_for(self, words, times=1):
        with self._news:
            came = self._news.wait_for(lambda: self._over or sum(words in line for line in self.lines) >= times, 100)
        assert came and sum(words in line for line in self.lines) >= times, self.said()

    def join(self, *words, expect=0):
        ended = subprocess.run([program(), "join", *words], cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=100)
        assert ended.returncode == expect, ended.stdout + ended.stderr + self.said()
        return ended.stdout + ended.stderr

    def end(self, status=0):
        assert self.process.wait(100) == status, self.said()
        with self._news:
            self._news.wait_for(lambda: self._over, 20)
        return sorted(json.loads(line.split("told ")[1]) for line in self.lines if "told " in line)

    def said(self):
        return "".join(self.lines)


def recount(run, told, begins):
    """begins: by rank, the clock in which it came. Each adds clock + 1 in every clock from there on."""
    total = sum(clock + 1 for begin in begins for clock in range(begin, run.clocks))
    assert [rank for rank, _, _ in told] == list(range(len(begins))), run.said()
    assert all(rows == [[total] * 4] * 20 for _, rows, _ in told), (total, begins, run.said())


@pytest.mark.parametrize("consistency", ["ssp:2", pytest.param("bsp", marks=pytest.mark.slow), pytest.param("essp:1", marks=pytest.mark.slow)])
def test_members_that_join_work_from_a_clock_on(tmp_path, consistency):
    run = Run(tmp_path, 2, [[5, 4]], consistency)
    run.wait_for("stands at 5", 2)
    assert run.join("-n", "2") == "ranks 2, 3\n"
    told = run.end()
    came = told[2][2][0][1]
    assert 0 < came <= 5 and told[3][2] == [[4, came]] and told[0][2] == [[2, 0], [4, came]], run.said()
    recount(run, told, [0, 0, came, came])
    assert "shoal: 2 members join: ranks 2, 3" in run.said()


def test_one_after_the_other_and_one_is_killed(tmp_path):
    """Who joins may be lost like any other, and others join behind it."""
    run = Run(tmp_path, 2, [[3, 3], [7, 4]], cold=True)  # its ranks are read from /proc
    run.wait_for("stands at 3", 2)
    assert run.join() == "rank 2\n"
    run.wait_for("stands at 7", 3)
    pid = next(pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if of_run(pid, run, 2))
    os.kill(pid, 9)
    run.wait_for("another is started in its place")
    run.wait_for("stands at 7", 6)
    assert run.join() == "rank 3\n"
    told = run.end()
    begins = [0, 0, next(clock for size, clock in told[0][2] if size == 3), next(clock for size, clock in told[0][2] if size == 4)]
    recount(run, told, begins)


def of_run(pid, run, rank):
    try:
        variables = open(f"/proc/{pid}/environ", "rb").read().split(bytes(1))
    except OSError:
        return False
    return f"SHOAL_RANK={rank}".encode() in variables and any(v.startswith(b"SHOAL_RUN_DIR=" + str(run.folder).encode()) for v in variables)


def test_nobody_waits_for_who_is_slow(tmp_path):
    """A member is lost, and replaced, while others start that are to join; and one request is taken back meanwhile."""
    run = Run(tmp_path, 2, [[5, 3]], cold=True)
    run.wait_for("stands at 5", 2)
    (tmp_path / "slow").touch()
    with subprocess.Popen([program(), "join", "-n", "3"], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as asking:
        run.wait_for("is slow", 3)
        asking.kill()
    with subprocess.Popen([program(), "join"], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as asking:
        run.wait_for("is slow", 4)
        os.kill(next(pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if of_run(pid, run, 1)), 9)
        run.wait_for("another is started in its place")
        run.wait_for("stands at 5", 4)  # both once more, with the process in the lost one's place and without the third
        (tmp_path / "slow").unlink()
        assert asking.communicate(timeout=100)[0] == "rank 2\n", run.said()
    told = run.end()
    recount(run, told, [0, 0, told[2][2][0][1]])


def test_rank_0_is_lost_as_one_opens_its_tables(tmp_path):
    run = Run(tmp_path, 2, [[5, 3]])
    run.wait_for("stands at 5", 2)
    (tmp_path / "fatal").touch()
    assert run.join() == "rank 2\n"
    told = run.end()
    recount(run, told, [0, 0, told[2][2][-1][1]])


@pytest.mark.slow
def test_one_that_stands_still_as_others_join_is_lost(tmp_path):
    run = Run(tmp_path, 2, [[5, 3]], variables={"SHOAL_TIMEOUT": "6", "SHOAL_JOIN_TIMEOUT": "15"})
    run.wait_for("stands at 5", 2)
    os.kill(int((tmp_path / "pid-1").read_text()), 19)
    assert run.join() == "rank 2\n"
    run.wait_for("another is started in its place")
    told = run.end()
    recount(run, told, [0, 0, told[2][2][-1][1]])


def test_one_that_is_not_like_the_others_changes_nothing(tmp_path):
    run = Run(tmp_path, 2, [[5, 3]])
    run.wait_for("stands at 5", 2)
    (tmp_path / "different").touch()
    assert "rank 0 (" in (said := run.join(expect=2)) and "has SHOAL_TIMEOUT 50 s, rank 2 (" in said and "has SHOAL_TIMEOUT 77 s (it must be the same on all members)" in said
    (tmp_path / "different").unlink()
    assert run.join() == "rank 2\n"
    told = run.end()
    recount(run, told, [0, 0, told[2][2][0][1]])


def test_by_hand_one_more_comes_by_itself(tmp_path):
    (tmp_path / "count.py").write_text(SCRIPT)
    with subprocess.Popen([program(), "meet", "-n", "2"], env=environment(), stdout=subprocess.PIPE, text=True) as meeting:
        try:
            coordinator = meeting.stdout.readline().split()[0].removeprefix("SHOAL_COORD=")

            def start(rank, size):
                variables = {"SHOAL_COORD": coordinator, "SHOAL_RANK": str(rank), "SHOAL_SIZE": str(size), "SHOAL_ON_PEER_LOST": "rejoin", "OMP_NUM_THREADS": "1", "SHOAL_TIMEOUT": "60"}
                return subprocess.Popen([sys.executable, "count.py", "12", "[[5, 3]]", "ssp:2"], cwd=tmp_path, env={**environment(), **variables}, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)

            members = [start(2, 3), start(0, 2), start(1, 2)]
            told = [json.loads(member.communicate(timeout=100)[0].split("told ")[1]) for member in members]
        finally:
            meeting.terminate()
    came = told[0][2][0][1]
    total = 2 * sum(range(1, 13)) + sum(range(came + 1, 13))
    assert [rank for rank, _, _ in told] == [2, 0, 1] and all(rows == [[total] * 4] * 20 for _, rows, _ in told), told


def test_who_ends_before_it_joins_changes_nothing(tmp_path):
    run = Run(tmp_path, 2, [[5, 3]])
    run.wait_for("stands at 5", 2)
    (tmp_path / "fault").write_text("no such data")
    said = run.join("-n", "2", expect=3)
    assert "which was to join, has ended: exit status 1: no such data" in said and "Traceback" not in said
    (tmp_path / "fault").unlink()
    assert run.join() == "rank 2\n"
    told = run.end()
    recount(run, told, [0, 0, told[2][2][0][1]])


def test_requests_that_cannot_be(tmp_path):
    run = Run(tmp_path, 2, [[5, 3]])
    run.wait_for("stands at 5", 2)
    assert "-n: the run would have 1025 members, and 1024 is the most" in run.join("-n", "1023", expect=2)
    assert "--hosts: this run's members meet on one machine (leave it out)" in run.join("--hosts", "a,b", expect=2)
    assert "nowhere: there is no such run (give its folder, or its name in runs/)" in run.join("nowhere", expect=2)
    assert run.join() == "rank 2\n"
    run.end()
    assert "runs: holds no run that takes more members" in run.join(expect=2)
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.search("takes no more members: it is over, or a lost one would not be replaced in it", run.join(folder.name, expect=2))
