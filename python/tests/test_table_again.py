"""`shoal run --on-peer-lost rejoin` with tables: who is lost is replaced, all do their work again from where the tables are, and every increment counts once."""

import json
import subprocess
import sys

import pytest

from pool import environment, program

SCRIPT = """
import json, os, sys
import numpy as np, shoal

clocks, consistency, faults = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def fault(moment, clock):
    # Each fault once, whoever has this rank then; what begins with "late" strikes who came in place of another.
    for rank, at, when in faults:
        if (rank, at, when.removeprefix("late ")) == (shoal.rank(), clock, moment) and when.startswith("late") <= ("SHOAL_GENERATION" in os.environ):
            try:
                open(f"fault-{rank}-{at}-{when}", "x").close()
            except FileExistsError:
                continue
            os.kill(os.getpid(), 9)

counts = shoal.Table("counts", 8, dtype="int64", consistency=consistency)
fault("opened", 0)
sums = shoal.Table("sums", 1, dtype="int64", consistency=consistency)
began = []

def work():
    began.append(counts.clock)
    while (clock := min(counts.clock, sums.clock)) < clocks:
        keys = np.arange(50) * (shoal.rank() + 1) % 40
        counts.read(keys)
        fault("read", clock)
        if counts.clock == clock:
            counts.add(keys, np.full((50, 8), clock + 1))
        if sums.clock == clock:
            sums.add([7], [clock + 1])
        fault("added", clock)
        for table in (counts, sums):  # after a loss one may be a clock ahead
            if table.clock == clock:
                table.tick()
                fault("ticked", clock)
    fault("counted", clocks)
    counts.barrier()
    sums.barrier()
    fault("met", clocks)
    rows = counts.read(np.arange(40)).tolist(), sums.read(7).tolist()
    sums.barrier()  # nobody leaves before all have read
    return rows

rows = shoal.again(work)
fault("left", clocks)
print("told", json.dumps([rows, began]), flush=True)
"""
MEMBERS, CLOCKS = 3, 25


def run(tmp_path, faults=(), consistency="ssp:2", expect=0, script=SCRIPT, policy="rejoin"):
    (tmp_path / "count.py").write_text(script)
    command = [program(), "run", "-n", str(MEMBERS), "--on-peer-lost", policy, "--", sys.executable, "count.py", str(CLOCKS), consistency, json.dumps(faults)]
    ended = subprocess.run(command, cwd=tmp_path, env={**environment(), "OMP_NUM_THREADS": "1", "SHOAL_TIMEOUT": "60"}, capture_output=True, text=True, timeout=200)
    said = ended.stdout + ended.stderr
    assert ended.returncode == expect, said
    return [json.loads(line.split("told ")[1]) for line in ended.stdout.splitlines() if "told " in line], said


def recount():
    """What work() returns."""
    rows = [[0] * 8 for _ in range(40)]
    for rank in range(MEMBERS):
        for clock in range(CLOCKS):
            for i in range(50):
                key = i * (rank + 1) % 40
                rows[key] = [value + clock + 1 for value in rows[key]]
    return [rows, [[MEMBERS * sum(range(CLOCKS + 1))]]]


FAULTS = {
    "undisturbed": [],
    "one, before it adds": [(1, 9, "read")],
    "rank 0, with half a clock": [(0, 12, "added")],
    "one after the other": [(2, 5, "added"), (1, 15, "read")],
    "between two openings": [(1, 0, "opened")],
    "who comes, as it opens its tables": [(1, 9, "read"), (1, 0, "late opened")],
    "between two tables' clocks": [(1, 9, "ticked")],
    "in the first clock": [(2, 0, "added")],
    "before the last barrier": [(1, CLOCKS, "counted")],
    "when its work is done": [(2, CLOCKS, "met")],
}


IN_CI = ("between two openings", "rank 0, with half a clock", "who comes, as it opens its tables", "when its work is done")


@pytest.mark.parametrize("faults", [pytest.param(each, id=name, marks=[] if name in IN_CI else [pytest.mark.slow]) for name, each in FAULTS.items()])
def test_every_increment_counts_once(tmp_path, faults):
    told, said = run(tmp_path, faults)
    assert len(told) == MEMBERS and all(rows == recount() for rows, _ in told), said
    assert said.count("; another is started in its place") == len(faults)
    if faults and faults[0][1]:  # the first after some clocks: from a clock that all had completed, and not from the beginning
        assert all(0 < began[-1] <= 1 + max(clock for _, clock, _ in faults) for _, began in told), said


@pytest.mark.parametrize("consistency", ["bsp", pytest.param("essp:2", marks=pytest.mark.slow)])
def test_by_other_consistencies(tmp_path, consistency):
    told, said = run(tmp_path, [(1, 9, "added")], consistency)
    assert len(told) == MEMBERS and all(rows == recount() for rows, _ in told), said


@pytest.mark.parametrize("script, line", [
    (SCRIPT.replace("def work():", "net = shoal.torch.nn.Linear(2, 2); shoal.data_parallel(net, shoal.torch.optim.SGD(net.parameters(), lr=1))\ndef work():"),
     "data_parallel(): a shoal.State or a table was made before it"),
    (SCRIPT.replace("counts = shoal", "net = shoal.torch.nn.Linear(2, 2); net = shoal.data_parallel(net, shoal.torch.optim.SGD(net.parameters(), lr=1))\ncounts = shoal", 1),
     "tables: a model is trained beside them, and members that come in place of lost ones take over one or the other (run with --on-peer-lost shrink)"),
])
def test_beside_a_model_it_is_refused(tmp_path, script, line):
    _, said = run(tmp_path, script=script, expect=2)
    assert line in said and "Traceback" not in said


def test_where_nobody_waits_it_is_refused(tmp_path):
    _, said = run(tmp_path, expect=2, policy="regrow")
    assert "tables: nobody waits for those who come, and clocks would (run with --on-peer-lost rejoin, and shoal.again())" in said


def test_what_comes_after_the_work_is_not_done_again(tmp_path):
    told, said = run(tmp_path, script=SCRIPT + "\nshoal.again(work)", expect=2)
    assert len(told) == MEMBERS and "again(): the work on tables is done, and who came in place of a lost member would do it again (let one again() hold all of it)" in said


def test_where_the_others_go_on_alone_it_is_a_call(tmp_path):
    """And tables hold what of the lost one was complete."""
    told, said = run(tmp_path, [(1, 9, "read")], policy="shrink", expect=0)
    assert len(told) == MEMBERS - 1 and all(rows == told[0][0] and began == [0] for rows, began in told), said
    alone = [sum(clock + 1 for clock in range(CLOCKS))] * (MEMBERS - 1)
    assert sum(alone) + sum(range(9)) <= told[0][0][1][0][0] <= sum(alone) + sum(range(11)), said


def test_alone_it_is_a_call():
    import shoal
    assert shoal.again(lambda a, b: a + b, 2, 3) == 5
