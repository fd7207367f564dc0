"""Views of tables: rows where they lie, that nobody may write and that stay as they are."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import shoal
from pool import program

ROWS, WIDTH = 500, 64


@pytest.fixture(scope="module")
def table():
    return shoal.Table("viewed", WIDTH, initial=shoal.Initial.normal(0, 1, seed=3))


def test_nothing_is_copied(table):
    keys = np.arange(ROWS)
    read = table.read(keys)
    tracemalloc.start()  # NumPy's memory, too
    view = table.view(keys)
    whole, rows = np.asarray(view), [view[i] for i in range(0, ROWS, 50)]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < read.nbytes / 10
    assert whole.shape == (ROWS, WIDTH) and np.array_equal(whole, read)
    other = table.view([7, 300])
    for i, key in enumerate([7, 300]):
        assert np.shares_memory(other[i], view[key]) and np.shares_memory(other[i], whole)
        assert np.array_equal(other[i], read[key])
    assert all(np.array_equal(row, read[50 * i]) for i, row in enumerate(rows))
    assert view.copied == 0 and len(view) == ROWS and len(list(other)) == 2
    assert np.array_equal(view[-1], read[-1]) and np.array_equal(view[np.int32(3)], read[3])


def test_rows_apart_are_one_array_by_a_copy(table):
    view = table.view([9, 2, 9])
    assert np.array_equal(np.asarray(view), table.read([9, 2, 9]))
    assert np.asarray(view, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.asarray(view), view[0])
    with pytest.raises(ValueError, match="these rows do not lie one behind the other: as one array they are a copy"):
        view.__array__(copy=False)
    ahead = table.view([1, 2])
    assert ahead.__array__(copy=False).base is not None
    assert not np.shares_memory(ahead.__array__(copy=True), ahead[0])
    assert np.asarray(table.view([])).shape == (0, WIDTH) and len(table.view([]).age) == 0


def test_nobody_writes(table):
    view = table.view([1, 2])
    for array in (view[0], np.asarray(view), view.age):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


def test_what_cannot_be_is_one_line(table):
    view = table.view([1, 2])
    for call, error, words in [
        (lambda: view[2], IndexError, "a view of 2 rows has none that is number 2"),
        (lambda: view[-3], IndexError, "none that is number -3"),
        (lambda: view[2**70], IndexError, "cannot fit"),
        (lambda: view[0:1], TypeError, "a view gives one row, view[3], or all of them, np.asarray(view)"),
        (lambda: view[1.0], TypeError, "a view gives one row"),
        (lambda: table.view([-1]), shoal.Error, "-1 is no key"),
        (lambda: table.view(b"ab"), shoal.Error, "not bytes"),
    ]:
        with pytest.raises(error) as caught:
            call()
        assert words in str(caught.value) and "\n" not in str(caught.value)


def count(consistency):
    """Views of each clock, held to the end, say what was read in it; ages are within the bound."""
    table = shoal.Table(f"counted-{consistency}".replace(":", "-"), 3, dtype="int64", consistency=consistency)
    keys = np.arange(40)
    ones = np.ones((40, 3), np.int64)
    views, read, fine = [], [], []
    for clock in range(12):
        views.append(table.view(keys))
        read.append(np.array(views[-1]))
        fine.append(views[-1].clock == clock and len(views[-1].age) == 40)
        own = table.view(keys)[5].copy()
        table.add(keys, ones)
        fine.append((table.view(keys)[5] >= own + 1).all())
        table.tick()
    table.barrier()
    same = all(np.array_equal(view, before) for view, before in zip(views, read))
    last = np.array(table.view(keys))
    table.barrier()
    return same, [view.clock - int(view.age.min()) for view in views], fine, (last == 12 * shoal.size()).all()


@pytest.mark.parametrize(("consistency", "behind"), [("bsp", 0), ("ssp:2", 2), ("essp:1", 1)])
def test_views_stay_as_they_are_while_all_go_on(pool, consistency, behind):
    for same, gaps, fine, last in pool(3).run(count, consistency):
        assert same and last and all(fine)
        assert max(gaps) <= behind


OUTLIVED = """
import atexit
kept = {}
atexit.register(lambda: print("still", float(kept["row"].sum()), float(kept["view"][1].sum()), len(kept["view"].age), flush=True))
import numpy as np, shoal

shoal.init()
table = shoal.Table("t", 8)
table.add(np.arange(4), np.ones((4, 8)))
table.tick()
table.barrier()
kept["view"] = table.view(np.arange(4))
kept["row"] = kept["view"][0]
table.barrier()
del table
"""


def test_a_view_outlives_its_table(tmp_path):
    command = [program(), "run", "-n", "2", "--", sys.executable, "-c", OUTLIVED]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and ended.stdout.count("still 16.0 16.0 4") == 2, ended.stdout + ended.stderr
