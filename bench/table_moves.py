"""How long a clock of a worker takes while a part of a table moves to another member, beside the same without.

    shoal run -n 3 --on-peer-lost shrink -- python bench/table_moves.py

Each clock reads and adds to 200 random rows of a table of 400,000 x 64 float32 (102 MB). Every sum is checked in the end.
"""

import threading
import time

import numpy as np

import shoal

ROWS, WIDTH, A_CLOCK = 400_000, 64, 200


def clocks(table: shoal.Table, random: np.random.Generator, seconds: float) -> np.ndarray:
    ones = np.ones((A_CLOCK, WIDTH), np.float32)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        keys = random.integers(0, ROWS, A_CLOCK)
        table.read(keys)
        table.add(keys, ones)
        table.tick()
        times.append(time.perf_counter() - begin)
    table.barrier()
    return np.sort(times) * 1e3


def told(times: np.ndarray) -> str:
    return f"{len(times)} clocks, median {np.median(times):.2f} ms, 99.9 of 100 {times[int(0.999 * len(times))]:.1f}, longest {times[-1]:.1f}"


def main() -> None:
    shoal.init()
    table = shoal.Table("moved", WIDTH, consistency="essp:2")
    random = np.random.default_rng(shoal.rank())
    if shoal.rank() == 0:
        for first in range(0, ROWS, 20_000):
            table.add(np.arange(first, first + 20_000), np.ones((20_000, WIDTH), np.float32))
    table.barrier()
    quiet = clocks(table, random, 4)
    took = []

    def move() -> None:
        begin = time.perf_counter()
        table.move(0, next(rank for rank in range(shoal.size()) if rank not in table.holders()[0]))
        took.append(time.perf_counter() - begin)

    mover = threading.Thread(target=move)
    if shoal.rank() == 0:
        mover.start()
    moving = clocks(table, random, 6)
    if shoal.rank() == 0:
        mover.join()
    counts = shoal.Table("clocks", 1, dtype="int64", consistency="bsp")
    counts.add([0], [[len(quiet) + len(moving)]])
    counts.barrier()
    expected = ROWS + A_CLOCK * int(counts.read([0])[0, 0])
    found = sum(int(table.read(np.arange(first, first + 20_000))[:, 0].sum(dtype=np.float64)) for first in range(0, ROWS, 20_000))
    assert found == expected, f"bench: {found} increments of {expected}"
    print(f"without: {told(quiet)}; with: {told(moving)}{f'; the move took {1e3 * took[0]:.0f} ms' if took else ''}", flush=True)
    table.barrier()


main()
