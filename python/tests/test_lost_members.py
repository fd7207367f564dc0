"""Members are killed while others use shared rows: the run goes on, no increment of theirs is lost, and those of the dead count by whole clocks."""

import json
import os
import subprocess
import sys

import pytest

SHOAL = os.path.join(os.path.dirname(sys.executable), "shoal")

COUNT = """
import os, signal, sys, json
import numpy as np
import shoal

consistency, victims, clocks = sys.argv[1], json.loads(sys.argv[2]), 60
shoal.init()
table = shoal.Table("counts", shoal.size(), dtype="int64", consistency=consistency)
keys = np.arange(200)
ones = np.zeros((len(keys), shoal.size()), np.int64)
ones[:, shoal.rank()] = 1
for clock in range(clocks):
    if str(shoal.rank()) in victims and clock == victims[str(shoal.rank())]:
        os.kill(os.getpid(), signal.SIGKILL)
    table.read(keys[clock % 10 :: 10])
    table.add(keys, ones)
    table.tick()
table.barrier()
counts = table.read(keys)
table.barrier()
print("counts", json.dumps([sorted(set(column)) for column in counts.T.tolist()]), flush=True)
"""


def run(*arguments, folder, expect, script=COUNT):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [SHOAL, "run", *arguments[0], "--", sys.executable, "-c", script, *arguments[1:]]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == expect, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("consistency", ["bsp", "ssp:3", *(pytest.param(each, marks=pytest.mark.slow) for each in ("essp:2", "vap:3", "cvap:2:3")), "async"])
def test_the_others_go_on_and_count_exactly(tmp_path, consistency):
    said = run(["-n", "4", "--on-peer-lost", "shrink"], consistency, json.dumps({"2": 31}), folder=tmp_path, expect=0)
    counted = [json.loads(line.split("counts ")[1]) for line in said.splitlines() if "counts " in line]
    assert len(counted) == 3
    for columns in counted:
        assert columns == counted[0]
        assert [columns[rank] for rank in (0, 1, 3)] == [[60]] * 3
        assert max(columns[2]) <= 31
        if consistency in ("bsp", "ssp:3", "essp:2"):  # else what has come counts
            assert len(columns[2]) == 1 and columns[2][0] >= 31 - 5, "whole clocks, and only what was under way is missing"
    assert "rank 2 was lost: killed by signal 9 (KILL); the others went on" in said


def test_two_that_hold_other_rows_may_be_lost(tmp_path):
    said = run(["-n", "5", "--on-peer-lost", "shrink"], "ssp:1", json.dumps({"1": 20, "3": 40}), folder=tmp_path, expect=0)
    counted = [json.loads(line.split("counts ")[1]) for line in said.splitlines() if "counts " in line]
    assert len(counted) == 3 and counted[0] == counted[1] == counted[2]
    assert [counted[0][rank] for rank in (0, 2, 4)] == [[60]] * 3


AGAIN = COUNT.replace("60", "int(sys.argv[3])").replace(
    "clock == victims[str(shoal.rank())]", "clock >= victims[str(shoal.rank())] and others_hold_all()").replace(
    "for clock in", '''
def others_hold_all():
    return all(set(holders) - {shoal.rank()} for holders in table.holders())

for clock in''')


@pytest.mark.parametrize("consistency", ["bsp", pytest.param("essp:2", marks=pytest.mark.slow)])
def test_neighbours_may_be_lost_one_after_the_other(tmp_path, consistency):
    """Rank 1 dies, then rank 2, who held the same rows, as soon as others hold them; and then one who took them over."""
    said = run(["-n", "5", "--on-peer-lost", "shrink"], consistency, json.dumps({"1": 20, "2": 100, "3": 1000}), "2000", folder=tmp_path, expect=0,
               script=AGAIN)
    counted = [json.loads(line.split("counts ")[1]) for line in said.splitlines() if "counts " in line]
    assert len(counted) == 2 and counted[0] == counted[1]
    assert [counted[0][rank] for rank in (0, 4)] == [[2000]] * 2
    assert all(len(column) == 1 for column in counted[0]), "whole clocks"
    assert said.count("was lost: killed by signal 9") == 3


def test_rows_that_nobody_holds_any_more_end_the_run_with_a_line(tmp_path):
    said = run(["-n", "4", "--on-peer-lost", "shrink"], "ssp:1", json.dumps({"1": 20, "2": 20}), folder=tmp_path, expect=3)
    assert "as was who held the same rows: rows of all tables are lost" in said


def test_a_run_fails_where_nobody_asked_it_to_go_on(tmp_path):
    said = run(["-n", "3"], "bsp", json.dumps({"1": 20}), folder=tmp_path, expect=3)
    assert "rank 1 failed first: killed by signal 9 (KILL)" in said


def test_another_word_is_refused(tmp_path):
    said = run(["-n", "2", "--on-peer-lost", "survive"], "bsp", "{}", folder=tmp_path, expect=2)
    assert '--on-peer-lost: "survive" is none of fail, shrink, rejoin and regrow' in said
