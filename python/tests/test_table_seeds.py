"""Tables over TCP, by seeds: members read, add, die in the middle of a clock, go in good order, and parts of the rows move; what is promised holds.

A seed decides the consistency and what each member does at which of its clocks; SHOAL_SEEDS says how many are tried (two here, twenty in `make
nightly`), SHOAL_FIRST_SEED where they begin. A failure names its seed. What is checked, as in tests/table/losses.cc:

- a read has everybody's increments of the clocks that its age names, and of no row more than was added (window, conservation);
- a worker sees its own increments at once (read-my-writes), and of each other one who lives never less than it saw before (order of a worker);
- nobody runs further ahead than the consistency lets it; nobody waits for ever (the run ends);
- at the end all have the same rows: of those who live or went every increment, of a dead one whole clocks, as many in each row.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

SHOAL = os.path.join(os.path.dirname(sys.executable), "shoal")
FIRST, COUNT = int(os.environ.get("SHOAL_FIRST_SEED", 1)), int(os.environ.get("SHOAL_SEEDS", 2))
KEYS, CLOCKS = 16, 30
CONSISTENCIES = ["ssp:2", "bsp", "essp:3", "cap:2", "async", "ssp:0", "dssp:0:3", "essp:0"]
BY_CLOCK = ("bsp", "ssp", "essp", "dssp")


def plan(seed: int) -> dict:
    """What happens in this run; arithmetic."""
    draw = np.random.default_rng(seed)
    members = int(draw.integers(3, 5))
    unlucky = int(draw.integers(members))
    goes = int((unlucky + 2) % members)  # holds none of the rows that who dies holds first
    return {
        "seed": seed, "members": members, "consistency": CONSISTENCIES[seed % len(CONSISTENCIES)],
        "dies": [unlucky, int(draw.integers(2, CLOCKS - 5))] if seed % 4 != 3 else [members, 0],
        "departs": [goes, int(draw.integers(2, CLOCKS - 2))] if seed % 4 == 3 else [members, 0],
        "move": [int(draw.integers(2, CLOCKS - 5)), int(draw.integers(members))] if seed % 4 != 1 else None,
    }


def increments(seed: int, rank: int):
    """By clock, the keys that this member adds 1 to, one after the other."""
    draw = np.random.default_rng([seed, rank])
    return [draw.integers(0, KEYS, 6) for _ in range(CLOCKS)]


def added(seed: int, rank: int, clocks: int) -> np.ndarray:
    """How often with timestamps below, by key."""
    return np.bincount(np.concatenate([[], *increments(seed, rank)[: max(0, clocks)]]).astype(int), minlength=KEYS)


def member(what: dict) -> None:
    import shoal

    shoal.init()
    seed, size, rank, consistency = what["seed"], what["members"], shoal.rank(), what["consistency"]
    table = shoal.Table("counts", size, dtype="int64", consistency=consistency)
    keys, ones = np.arange(KEYS), np.zeros((1, size), np.int64)
    ones[0, rank] = 1
    bound = {"bsp": 0, "async": None}.get(consistency, int(consistency.split(":")[-1]) if ":" in consistency else None)
    own = np.zeros(KEYS, np.int64)
    before, holders = np.zeros((KEYS, size), np.int64), table.holders()
    for clock, mine in enumerate(increments(seed, rank)):
        rows = table.read(keys)
        assert (rows[:, rank] == own).all(), "own increments are seen at once"
        for other in range(size):
            if other == what["dies"][0] or other == rank:
                continue
            gone = other == what["departs"][0]
            assert (rows[:, other] <= added(seed, other, CLOCKS)).all(), "nobody sees more than was added"
            if holders == table.holders():  # another holder that answers may lack what is still on its way to it
                assert (rows[:, other] >= before[:, other]).all(), f"of rank {other} nobody sees less than before, at clock {clock}"
            if bound is not None:
                least = min(clock - bound, what["departs"][1] if gone else CLOCKS)
                assert (rows[:, other] >= added(seed, other, least)).all(), f"all of the clocks before {least} of rank {other}, at clock {clock}"
        before, holders = rows, table.holders()
        for i, key in enumerate(mine):
            if [rank, clock] == what["dies"] and i == 3:
                os.kill(os.getpid(), 9)
            table.add([int(key)], ones)
            own[key] += 1
        table.tick()
        if [rank, clock + 1] == what["departs"]:
            shoal.Table.depart()
            print(json.dumps({"departed": rank}), flush=True)
            return
        if what["move"] and clock == what["move"][0] and rank == (what["dies"][0] + 1) % size:
            part = what["move"][1]
            holders = table.holders()[part]
            to = next((one for one in range(size) if one not in holders and one not in (what["dies"][0], what["departs"][0])), None)
            if to is not None and holders:
                try:
                    table.move(part, to)
                except shoal.Error as error:  # others may have come to hold it, or it was lost meanwhile
                    assert "holds part" in str(error) or "lost" in str(error), error
    table.barrier()
    print(json.dumps({"rank": rank, "rows": table.read(keys).tolist()}), flush=True)
    table.barrier()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_what_is_promised_holds(tmp_path, seed):
    what = plan(seed)
    variables = {**os.environ, "SHOAL_SHARED_MEMORY": "0", "OMP_NUM_THREADS": "1", "SHOAL_TIMEOUT": "60"}
    command = [SHOAL, "run", "-n", str(what["members"]), "--on-peer-lost", "shrink", "--", sys.executable, __file__, json.dumps(what)]
    ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=180)
    said = f"{what}\n{ended.stdout}{ended.stderr}"
    told = [json.loads(line[line.index("{") :]) for line in ended.stdout.splitlines() if "{" in line]
    rows = {one["rank"]: np.array(one["rows"]) for one in told if "rows" in one}
    dead, died_at = what["dies"]
    gone, gone_at = what["departs"]
    assert ended.returncode == 0 and sorted(rows) == [rank for rank in range(what["members"]) if rank not in (dead, gone)], said
    first = next(iter(rows.values()))
    for rank, mine in rows.items():
        assert (mine == first).all(), f"rank {rank} has other rows\n{said}"
    for worker in range(what["members"]):
        if worker == dead:
            if what["consistency"].split(":")[0] in BY_CLOCK:
                cuts = [cut for cut in range(died_at + 1) if (first[:, worker] == added(seed, worker, cut)).all()]
                assert cuts, f"of the dead worker some rows count more clocks than others\n{said}"
            assert (first[:, worker] <= added(seed, worker, died_at + 1)).all(), said
        else:
            assert (first[:, worker] == added(seed, worker, gone_at if worker == gone else CLOCKS)).all(), f"of worker {worker}\n{said}"


if __name__ == "__main__":
    member(json.loads(sys.argv[1]))
