"""Tables from Python: values, strings as keys, what a user may do wrong."""

import numpy as np
import pytest

import shoal


def count_words(consistency):
    """Every member counts the words of its share of a text; afterwards everybody reads the counts of all."""
    words = ("the cat sat on the mat and the dog sat on the cat " * 7).split()
    counts = shoal.Table(f"words {consistency}".replace(" ", "-").replace(":", "-"), dtype="int64", consistency=consistency)
    mine = words[shoal.rank() :: shoal.size()]
    for begin in range(0, len(mine), 5):
        some = mine[begin : begin + 5]
        counts.add(some, np.ones(len(some), np.int64))
        counts.tick()
    assert counts.clock == (len(mine) + 4) // 5
    counts.barrier()
    assert counts.clock == (len(words[:: shoal.size()]) + 4) // 5  # that of the member who had most
    read = {word: int(counts.read(word)[0, 0]) for word in set(words)}
    counts.barrier()
    return read, {word: words.count(word) for word in set(words)}


@pytest.mark.parametrize("consistency", ["bsp", "ssp:2", "essp:2", "cap:2", "dssp:0:2", "pssp:1:1", "vap:2", "cvap-strong:1:2", "significance:0.5:2",
                                         "async"])
def test_words_are_counted_exactly(pool, consistency):
    for read, expected in pool(3).run(count_words, consistency):
        assert read == expected


def what_is_not_finite():
    with pytest.raises(shoal.Error) as refused:
        shoal.Table("strict", 2).add([5, 6], [[1, 2], [3, np.nan]])
    clipped, passed = (shoal.Table(policy, 3, not_finite=policy) for policy in ("clip", "pass"))
    for table in clipped, passed:
        table.add(7, [[np.nan, np.inf, -np.inf]])
    return str(refused.value), clipped.read(7)[0], passed.read(7)[0]


def test_what_is_not_finite_is_refused_or_made_finite_or_taken_as_it_is(pool):
    line, clipped, passed = pool(1).run(what_is_not_finite)[0]
    assert line == "table strict: row 6 was given the value nan (nothing of this call was taken; look at the step size and the data)"
    largest = np.finfo(np.float32).max
    assert clipped.tolist() == [0, largest, -largest]
    assert np.isnan(passed[0]) and passed[1:].tolist() == [np.inf, -np.inf]


def shapes():
    table = shoal.Table("shapes", 3, initial=shoal.Initial.uniform(-1, 1, seed=4))
    keys = np.arange(6).reshape(2, 3)
    rows = table.read(keys)
    table.barrier()
    table.add(keys, np.ones((2, 3, 3)))
    own = table.read(keys)
    table.tick()
    table.barrier()
    return rows, own, table.read(keys), table.clock


def test_rows_have_the_shape_of_their_keys_and_start_alike_everywhere(pool):
    results = pool(2).run(shapes)
    for rows, own, after, clock in results:
        assert rows.shape == (2, 3, 3) and rows.dtype == np.float32
        assert np.abs(rows).max() <= 1 and np.unique(rows).size == rows.size
        assert np.array_equal(rows, results[0][0])
        assert np.array_equal(own, rows + np.float32(1))
        assert np.allclose(after, rows + 2, atol=1e-6)
        assert clock == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: shoal.Table("a b"), "a table's name is one word without a colon"),
        (lambda t: shoal.Table("x", consistency="ssp"), 'no consistency is called "ssp" (one of bsp, bsp:BACKUPS, ssp:S'),
        (lambda t: shoal.Table("x", dtype="float16"), "table x: no table holds float16; one of float32"),
        (lambda t: shoal.Table("x", dim=0), "dim a positive integer, not 0"),
        (lambda t: t.read(b"ab"), "not bytes"),
        (lambda t: t.read([5, "x"]), "not both"),
        (lambda t: shoal.Table("i", dtype="int32").add([1], [1.5]), "table i: float64 values for rows of int32"),
        (lambda t: shoal.Table("i", dtype="int32").add([1], [2**31]), "table i: 2147483648 is no int32"),
        (lambda t: shoal.Table("i", dtype="int32").assign([1], [-(2**31) - 1]), "table i: -2147483649 is no int32"),
        (lambda t: t.add([1], [[1j, 2]]), "table t: complex128 values for rows of float32"),
        (lambda t: shoal.Table("x", dtype="nosuch"), "table x: no table holds nosuch"),
        (lambda t: t.snapshot(""), "snapshot of table t: the folder has no name"),
        (lambda t: t.add([1, 2, 3], np.ones((2, 3))), "values of shape (2, 3) for rows of shape (3, 2)"),
        (lambda t: shoal.Table("x", initial=shoal.Initial("foo", 1.0)), "no initial values are called foo"),
        (lambda t: t.read([-1]), "-1 is no key: these are from 0 to 2**64 - 1"),
        (lambda t: t.read([7, 2**64]), "18446744073709551616 is no key"),
        (lambda t: t.read([[-1, 2**63]]), "-1 is no key"),
        (lambda t: t.intend([1], -1), "table t: rows are intended for a number of clocks from 0 on, not -1"),
        (lambda t: t.intend([1], 1.5), "from 0 on, not 1.5"),
        (lambda t: t.read([1.5]), "keys are integers or strings, not float64"),
        (lambda t: t.add([1, 2], [1.0, 2.0, 3.0]), "table t: values of shape (3,) for rows of shape (2, 2)"),
        (lambda t: t.add([7], [[1.0, float("nan")]]), "table t: row 7 was given the value nan"),
        (lambda t: shoal.Table("t", 5), 'table t: opened as "t: f32 x 5'),
    ],
)
def test_what_cannot_be_is_one_line(call, words):
    table = shoal.Table("t", 2)
    with pytest.raises(shoal.Error) as caught:
        call(table)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def switches():
    counts = shoal.Table("switched", dtype="int64", consistency="ssp:1")
    said = [counts.consistency]
    for following in ["essp:2", "vap:3", "bsp"]:
        counts.read([1, 2])
        counts.add([1, 2], [1, 2])
        counts.tick()
        counts.consistency = following
        said.append(counts.consistency)
    rows = counts.read([1, 2]).ravel().tolist()
    counts.barrier()
    return said, rows


def test_members_switch_the_consistency_together(pool):
    for said, rows in pool(2).run(switches):
        assert said == ["ssp:1", "essp:2", "vap:3", "bsp"]
        assert rows == [6, 12]


def walk(clocks):
    """Each member reads other rows in each clock, and adds to them; rows are intended for the next clock, or not."""
    counts = shoal.Table(f"walked-{clocks}", dtype="int64", consistency="essp:1")
    for clock in range(30):
        if clocks is not None:
            counts.intend(np.arange(10) + 10 * (clock + 1), clocks)
        keys = np.arange(10) + 10 * clock
        counts.read(keys)
        counts.add(keys, np.ones((10, 1), np.int64))
        counts.tick()
    counts.barrier()
    sums = counts.read(np.arange(310)).ravel().tolist()
    counts.barrier()
    return sums, counts.telemetry()["unsubscribed"]


def test_intended_rows_are_unsubscribed_when_their_clocks_are_over(pool):
    for sums, unsubscribed in pool(2).run(walk, None):
        assert sums == [2] * 300 + [0] * 10
        assert unsubscribed == 0  # they rest
    for sums, unsubscribed in pool(2).run(walk, 1):
        assert sums == [2] * 300 + [0] * 10
        assert unsubscribed == 290  # all but the first ten, which nobody intended, and those whose clock is not over


def test_large_and_small_keys_stand_side_by_side():
    table = shoal.Table("keys", 1, "int64")
    table.add([0, 2**64 - 1], [3, 4])
    assert table.read([2**64 - 1, 0]).ravel().tolist() == [4, 3]
    assert table.read(np.array([2**64 - 1], np.uint64))[0, 0] == 4
    table.add(np.array(["a", "b"], object), [1, 2])
    assert table.read(["b", "a"]).ravel().tolist() == [2, 1]


def met():
    table = shoal.Table("met", consistency="ssp:2")
    for _ in range(6):
        table.read([1, 2, 3])
        table.add([1, 2], np.ones((2, 1), np.float32))
        table.tick()
    table.barrier()
    return table.telemetry()


def test_telemetry_counts_reads_waits_and_bytes(pool):
    for told in pool(2).run(met):
        assert sum(told["behind"]) == 18 and sum(told["behind"][3:]) == 0
        assert sum(told["old"]) == 18 and len(told["old"]) == len(told["old_below"]) and told["old_below"][:2] == [1e-6, 2e-6]
        assert set(told["waited"]) == {"gate", "fetch", "back-pressure", "bound", "barrier"} and told["waited"]["bound"] == 0
        assert all(seconds >= 0 for seconds in told["waited"].values())
        assert told["said"]["increments"] > 6 * 2 * 40 and told["heard"]["rows"] > 0
