"""A step of one process alone, by shoal.data_parallel(), which keeps freed memory for the next step (shoal/core/heap.h), beside plain PyTorch.

    python bench/heap.py
    python bench/heap.py --models resnet-50 --batch 4 --steps 6
    python bench/heap.py --quick                                 a smoke test

Each in a process of its own: what the allocator does is the whole process's. In turns; medians of steps, and of rounds.
"""

from __future__ import annotations

import json
import subprocess

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "steps_alone.py")


def measure(way: str, model: str, args) -> dict[str, float]:
    ended = subprocess.run([sbs.PYTHON, MEMBER, way, model, str(args.batch), str(args.steps)], capture_output=True, text=True, timeout=900)
    if ended.returncode != 0:
        raise SystemExit(f"bench: {model}: {ended.stderr.strip()}")
    return json.loads(ended.stdout)


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--models", nargs="+", default=["fcnet", "cifar-quick", "resnet-20", "char-transformer"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if args.quick:
        args.models, args.steps, args.rounds = ["lenet"], 2, 1
    sbs.print_header(f"one process, {args.batch} samples a step")
    print(f"{'model':>16} {'way':>8} {'ms':>9} {'spread':>18} {'pages a step':>13} {'MB':>6} {'plain / shoal':>14}")
    for model in args.models:
        figures = sbs.interleave({way: lambda way=way: measure(way, model, args) for way in ("plain", "shoal")}, args.rounds)
        for way, of in figures.items():
            ratio = f"{sbs.paired_ratio(figures['plain']['ms'], of['ms']):.3f}x" if way == "shoal" else ""
            print(f"{model:>16} {way:>8} {sbs.median(of['ms']):>9.2f} {sbs.spread(of['ms']):>18} {sbs.median(of['pages']):>13.0f} {sbs.median(of['MB']):>6.0f} {ratio:>14}",
                  flush=True)


if __name__ == "__main__":
    main()
