"""Snapshots of tables from Python: others go on meanwhile, another number of members restores them; rows as one file; a member that dies."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from pool import PATIENCE, launch

import shoal

_number = itertools.count()


def table_of(name, **options):
    return shoal.Table(name, 3, "int64", **options)


def count(name, folder, consistency, clocks):
    """Each member adds 10**rank to keys 0..clock at each clock; rank 1 takes a snapshot at half of them."""
    table = table_of(name, consistency=consistency)
    snapshot = None
    for clock in range(clocks):
        if shoal.rank() == 1 and clock == clocks // 2:
            snapshot = table.snapshot_begin(folder)
            assert snapshot.clock == clock
        table.add(np.arange(clock + 1), np.full((clock + 1, 3), 10 ** shoal.rank()))
        table.tick()
    if snapshot is not None:
        assert snapshot.wait() == clocks // 2
    table.barrier()


def restored(name, folder, keys):
    table = table_of(name)
    clock = table.restore(folder)
    rows = table.read(np.arange(keys))
    table.barrier()
    return clock, table.clock, rows


@pytest.mark.parametrize("consistency", ["bsp", "ssp:2", "essp:2"])
@pytest.mark.parametrize("members", [1, 2, 3])
def test_what_was_added_before_the_clock_is_restored_by_any_number_of_members(pool, tmp_path, consistency, members):
    name = f"counts-{next(_number)}"
    pool(3).run(count, name, tmp_path / "t", consistency, 12)
    expected = np.repeat([[111 * max(0, 6 - key)] * 3 for key in range(12)], 1, axis=0)
    for clock, own, rows in pool(members).run(restored, name + "r" * (members == 3), tmp_path / "t", 12):
        assert clock == own == 6
        assert np.array_equal(rows, expected)


def written_out(name, path, dtype):
    """Exported by one member, imported by another into a second table."""
    table, other = (shoal.Table(f"{name}-{which}", 2, dtype) for which in "ab")
    keys = np.array([3, 2**64 - 1, 7], np.uint64)
    values = np.array([[1.1, -2], [3, 1e-7], [5, 1e30]]).astype(dtype) if dtype[0] == "f" else np.array([[1, 2], [3, -4], [5, 6]], dtype)
    table.barrier()
    if shoal.rank() == 0:
        table.assign(keys, values)
        assert table.export(path) == 3
    table.barrier()
    if shoal.rank() == 1:
        assert other.import_(path) == 3
    other.barrier()
    rows = other.read(keys)
    other.barrier()
    return np.array_equal(rows, values)


@pytest.mark.parametrize("ending", ["safetensors", "npz", "csv"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_rows_go_through_a_file_unchanged(pool, tmp_path, ending, dtype):
    path = str(tmp_path / f"rows.{ending}")
    assert all(pool(2).run(written_out, f"out-{next(_number)}", path, dtype))
    assert os.listdir(tmp_path) == [f"rows.{ending}"]


def test_what_cannot_be_read_is_one_line(tmp_path):
    table = shoal.Table(f"lines-{next(_number)}", 3)
    np.savez(tmp_path / "wide.npz", keys=np.arange(2), values=np.ones((2, 4), np.float32))
    np.savez(tmp_path / "other.npz", keys=np.arange(2), values=np.ones((2, 3)))
    np.savez(tmp_path / "none.npz", rows=np.arange(2))
    for name, text in {"cut.npz": "PK", "cut.safetensors": "xx", "bad.csv": "key,value0,value1,value2\n1,2,3\n", "word.csv": "key\n1,2,3,x\n"}.items():
        (tmp_path / name).write_text(text)
    expected = {
        "wide.npz": "keys of shape (2,) and values of shape (2, 4)",
        "other.npz": "keys of int64 and values of float64",
        "none.npz": "holds no rows of a table",
        "cut.npz": "holds no rows of a table",
        "cut.safetensors": "damaged, cut short or no safetensors file",
        "bad.csv": "line 2 has 3 columns, not 4",
        "word.csv": "could not convert string to float: 'x'",
        "missing.csv": "no such file",
        "rows.parquet": "no format of tables ends in '.parquet' (one of .safetensors, .npz, .csv)",
    }
    for name, words in expected.items():
        with pytest.raises(shoal.Error) as caught:
            table.import_(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name)) and words in str(caught.value), str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(shoal.Error, match="there is no snapshot of a table"):
        table.restore(tmp_path)


COLD = """
import os
import numpy as np, shoal
table = shoal.Table("rows", 1000, "float64", "bsp", rule="adam:0.5")
keys = np.arange(2000)
for clock in range(3):
    table.add(keys, np.full((2000, 1000), clock + 1.5 + shoal.rank()))
    table.tick()
table.barrier()
with open(f"digest-{shoal.rank()}", "wb") as file:
    file.write(table.read(keys).tobytes())
table.barrier()
assert (os.environ.get("SHOAL_COLD_ROWS") is None) == (".shoal-rows-" not in open("/proc/self/maps").read())
"""


def test_rows_in_a_file_are_those_in_memory(tmp_path):
    script = tmp_path / "cold.py"
    script.write_text(COLD)
    digests = []
    for variables in ({}, {"SHOAL_COLD_ROWS": str(tmp_path)}):
        run = launch(2, [sys.executable, str(script)], variables, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        output, _ = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, output
        digests.append([(tmp_path / f"digest-{rank}").read_bytes() for rank in range(2)])
    assert digests[0] == digests[1] and digests[0][0] == digests[0][1]
    nowhere = launch(1, [sys.executable, str(script)], {"SHOAL_COLD_ROWS": str(tmp_path / "none")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = nowhere.communicate(timeout=PATIENCE)
    assert f"{tmp_path}/none: no room for rows: No such file or directory (name another folder for cold rows)" in output


DIES = """
import os, signal, sys
import numpy as np, shoal
table = shoal.Table("large", 1000)
keys = np.arange(4000)
table.add(keys, np.ones((4000, 1000), np.float32))
table.tick()
table.barrier()
if shoal.rank() == 0:
    table.snapshot(sys.argv[1])
table.add(keys, np.ones((4000, 1000), np.float32))
table.tick()
table.barrier()
if shoal.rank() == 0:
    table.snapshot_begin(sys.argv[1])
else:
    os.kill(os.getpid(), signal.SIGKILL)
table.barrier()
"""

GOES_ON = """
import os, sys
import numpy as np, shoal
table = shoal.Table("large", 1000)
assert table.restore(sys.argv[1]) == 1
for begin in range(0, 4000, 1000):
    assert (table.read(np.arange(begin, begin + 1000)) == 2).all()
table.barrier()
if shoal.rank() == 0:
    table.snapshot(sys.argv[1])
table.barrier()
"""


def test_a_member_that_is_killed_while_it_writes_leaves_the_snapshot_before(tmp_path):
    script = tmp_path / "dies.py"
    script.write_text(DIES)
    dying = launch(2, [sys.executable, str(script), str(tmp_path / "t")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = dying.communicate(timeout=PATIENCE)
    assert dying.returncode == 3, output
    script.write_text(GOES_ON)
    going_on = launch(3, [sys.executable, str(script), str(tmp_path / "t")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = going_on.communicate(timeout=PATIENCE)
    assert going_on.returncode == 0, output
    assert len(os.listdir(tmp_path / "t")) == 4, os.listdir(tmp_path / "t")  # nothing of the other two
