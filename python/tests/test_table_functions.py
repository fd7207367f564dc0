"""Functions that servers of a table run, written in Python: what they see and write, from all members at once, and what goes wrong in them."""

import numpy as np
import pytest

import shoal

KEYS = np.arange(60, dtype=np.uint64)


def clip(keys, rows, most):
    """Rows no longer than that; returns how long they were."""
    norms = np.linalg.norm(rows, axis=1)
    rows *= np.minimum(1, most[0] / np.maximum(norms, 1e-30))[:, None]
    return norms


def clipped():
    table = shoal.Table("clipped", 4, consistency="bsp")
    table.define("clip", clip)
    rows = np.random.default_rng(1).normal(size=(60, 4)).astype(np.float32)
    if shoal.rank() == 0:
        table.assign(KEYS, rows)
    table.barrier()
    norms = table.call("clip", KEYS.reshape(3, 20), 1.5) if shoal.rank() == 1 else None
    table.barrier()
    found = table.read(KEYS)
    whole = table.call("count"), table.call("sum_of_squares"), table.call("top", KEYS[:2], 1), table.age
    table.barrier()
    return rows, norms, found, whole


def test_rows_are_changed_where_they_are(pool):
    results = pool(3).run(clipped)
    rows, norms, found, _ = results[1]
    expected = np.linalg.norm(rows, axis=1)
    assert norms.shape == (3, 20, 1)
    np.testing.assert_allclose(norms.ravel(), expected, rtol=1e-5)
    np.testing.assert_allclose(found, rows * np.minimum(1, 1.5 / expected)[:, None], rtol=1e-5)
    for _, _, theirs, (count, squares, top, age) in results:
        assert np.array_equal(theirs, found) and count.tolist() == [60] and age == 0
        np.testing.assert_allclose(squares, [np.square(found.astype(np.float64)).sum()])
        column = np.argmax(np.abs(found[:2]), axis=1)
        assert np.array_equal(top, np.stack([column, found[[0, 1], column]], axis=1))


def from_all_at_once(consistency):
    """Calls, increments and plain Python side by side: who waits for a server must not hold the interpreter that its function needs."""
    table = shoal.Table(f"at-once-{consistency}".replace(":", "-"), 2, dtype="int64", consistency=consistency)

    def visit(keys, rows, by):
        sum(range(2000))  # the interpreter changes hands meanwhile
        rows[:, 1] += by[0]

    table.define("visit", visit)
    for _ in range(30):
        table.add(KEYS, np.tile([1, 0], (60, 1)))
        assert table.call("visit", KEYS, 2).shape == (60, 0)
        table.intend(KEYS)
        table.tick()
        table.read(KEYS)
    table.barrier()
    found = table.read(KEYS)
    table.barrier()
    return found


@pytest.mark.parametrize("consistency", ["bsp", "essp:2", "async"])
def test_all_members_call_at_once(pool, consistency):
    for found in pool(3).run(from_all_at_once, consistency):
        assert np.array_equal(found, np.tile([90, 180], (60, 1)))


def mistakes():
    table = shoal.Table("mistaken", 2, consistency="ssp:1")

    def raises(keys, rows, argument):
        raise ValueError("these rows\nare wrong")

    functions = {"raises": raises, "short": lambda keys, rows, argument: [1, 2, 3], "words": lambda keys, rows, argument: ["a"] * len(keys),
                 "infinite": lambda keys, rows, argument: rows.fill(np.inf), "asks": lambda keys, rows, argument: table.read(keys),
                 "right": lambda keys, rows, argument: keys % 7}
    for name, function in functions.items():
        table.define(name, function)
    lines = []
    for name in [*functions, "missing"]:
        try:
            table.call(name, [5, 5])
        except shoal.Error as error:
            lines.append(str(error))
    right = table.call("right", [5, 9])
    table.barrier()
    return lines, right


def test_a_mistake_is_one_line_at_who_called(pool):
    words = ["function raises: ValueError: these rows", "function short: returned values of shape (3,) for 1 rows", "function words: ValueError: could not convert",
             "was given the value inf", "a function that runs on a server may not use tables", 'function missing: no function is called "missing" here']
    for lines, right in pool(2).run(mistakes):
        assert len(lines) == len(words) and right.tolist() == [[5.0], [2.0]]
        for line, expected in zip(lines, words):
            assert expected in line and "\n" not in line
