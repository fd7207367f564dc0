"""From the command to the first step taken by every member, seconds: `shoal run` and shoal.data_parallel beside torchrun and
DistributedDataParallel on gloo, and Shoal under torchrun; and the CPU time of all until they have ended.

    python bench/start.py
    python bench/start.py --quick      a smoke test
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "first_step.py")


def until_first_step(command: list[str], members: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.clock_gettime(time.CLOCK_MONOTONIC)
        cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
    steps = [float(at) for at in re.findall(r"first step at ([0-9.]+)", ran.stdout)]
    if ran.returncode or len(steps) != members:
        sys.exit(f"bench: {' '.join(command)} ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return {"seconds": max(steps) - began, "cpu": sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - cpu}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if args.quick:
        args.members, args.rounds = 2, 1
    if args.rate:
        parser.error("starts members on this machine alone: --rate says nothing here")
    torchrun = [sbs.PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(args.members), MEMBER]
    run = [sbs.shoal(), "run", "-n", str(args.members)]
    results = sbs.interleave({
        "shoal run": lambda: until_first_step([*run, "--", sbs.PYTHON, MEMBER, "shoal"], args.members),
        "shoal run --cold": lambda: until_first_step([*run, "--cold", "--", sbs.PYTHON, MEMBER, "shoal"], args.members),
        "torchrun, shoal": lambda: until_first_step([*torchrun, "shoal"], args.members),
        "torchrun, gloo": lambda: until_first_step([*torchrun, "gloo"], args.members),
    }, args.rounds)
    sbs.print_header(f"seconds from the command to the first step of all {args.members} members, {args.rounds} rounds interleaved")
    gloo = results["torchrun, gloo"]["seconds"]
    for way, figures in results.items():
        seconds = figures["seconds"]
        print(f"{way:>16}: {sbs.median(seconds):.2f} s ({sbs.spread(seconds)}), {1 / sbs.paired_ratio(gloo, seconds):.2f} of torchrun with gloo; "
              f"{sbs.median(figures['cpu']):.1f} CPU-seconds until all have ended", flush=True)


if __name__ == "__main__":
    main()
