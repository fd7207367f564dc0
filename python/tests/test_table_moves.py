"""Parts of a table move to other members while all use it; what cannot move is refused in a line."""

import os
import subprocess
import sys

import pytest

SHOAL = os.path.join(os.path.dirname(sys.executable), "shoal")

MOVE = """
import numpy as np, shoal

shoal.init()
table = shoal.Table("counts", 8, dtype="int64", consistency="essp:2")
keys = np.arange(500)
ones = np.ones((500, 8), np.int64)
for clock in range(200):
    table.read(keys[clock % 7 :: 7])
    table.add(keys, ones)
    table.tick()
    if clock == 50 and shoal.rank() == 0:
        before = table.holders()
        first = before[0][0]
        to = next((rank for rank in range(shoal.size()) if rank not in table.holders()[0]), 0)
        table.move(0, to)
        assert to in table.holders()[0] and first not in table.holders()[0]
        assert table.holders()[1:] == before[1:]
        for part, rank in ((0, to), (9, 1), (1, 9)):
            try:
                table.move(part, rank)
            except shoal.Error as error:
                print("refused:", error)
table.barrier()
assert (table.read(keys) == 200 * shoal.size()).all()
print("exact", flush=True)
table.barrier()
"""


def run(*arguments, folder, **variables):
    command = [SHOAL, "run", *arguments, "--", sys.executable, "-c", MOVE]
    return subprocess.run(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", **variables}, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_part_moves_and_sums_are_exact(tmp_path, parts):
    """The rows of each member lie in so many of them."""
    ended = run("-n", "3", "--on-peer-lost", "shrink", folder=tmp_path, SHOAL_TABLE_PARTS=str(parts))
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0 and said.count("exact") == 3, said
    assert "holds part 0 already (name another member)" in said
    assert f"there is no part 9 (0 to {3 * parts - 1})" in said
    assert "rank 9 serves no rows (name a member that serves)" in said


def test_nothing_moves_where_nothing_may_be_held_twice(tmp_path):
    ended = run("-n", "2", folder=tmp_path)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "part 0 cannot move: nothing may be held twice here (--on-peer-lost shrink, and two servers or more)" in ended.stderr
