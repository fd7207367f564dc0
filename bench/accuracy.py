"""Accuracy on held-out images of Fashion-MNIST by each way of a gradient, beside one process with the same seeds, batches and steps.

    python bench/accuracy.py                                     lenet, 2 members, 5 seeds, every way that is exact
    python bench/accuracy.py --plans int8 topk:0.01 local:8 --epochs 5      what is lossy or stale
    python bench/accuracy.py --plans topk:0.01:0.9 --sgd 0.9 --epochs 3     by SGD, whose momentum a plan that gathers with its own takes over
    python bench/accuracy.py --quick                             a smoke test

One process takes the members' batches together. Members train as `shoal train` does; what differs is the order in which floats are added. A row is the
mean of all seeds, its difference from one process with the same seed, and the standard error of that difference: in points of a hundred.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile

import side_by_side as sbs
from shoal import _C

EXACT = ["auto", "direct", "chain", "ring", "halving_doubling", "ps", "factors", "wfbp", "p3", "poseidon", "ddp:25MB", "owners", "hybrid:1"]


def accuracy(words: list[str], plan: str, seed: int, args) -> float:
    command = [sbs.shoal(), "train", args.model, "--data", args.data, "--seed", str(seed), "--plan", plan, "--json", *words]
    if args.sgd:
        command += ["--sgd", "0" if _C.have_momentum(plan, None, [""])[0] else args.sgd]
    if args.lr:
        command += ["--lr", args.lr]
    command += ["--steps", str(args.steps)] if args.steps else ["--epochs", str(args.epochs)]
    with tempfile.TemporaryDirectory() as folder:  # of the run folders
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    if ended.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)}: {ended.stderr.strip()}")
    line = next(line for line in ended.stdout.splitlines() if "{" in line)
    return 100 * json.loads(line[line.index("{"):])["accuracy"]


def main() -> None:
    parser = sbs.options(__doc__)
    parser.set_defaults(members=2)
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--plans", nargs="+", default=EXACT)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="Fashion-MNIST")
    parser.add_argument("--batch", type=int, default=64, help="images a member")
    parser.add_argument("--steps", type=int, default=0, help="0: as many as --epochs are")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--sgd", help="momentum: by SGD with it instead of Adam")
    parser.add_argument("--lr", help="learning rate (default: that of shoal train)")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    if args.quick:
        args.plans, args.steps, args.seeds = ["auto", "ring"], 10, 2
    sbs.print_header(f"{args.model} on Fashion-MNIST: {args.members} members, {args.batch} images each, {f'{args.steps} steps' if args.steps else f'{args.epochs} epochs'}, seeds 1 to {args.seeds}")
    print(f"{'plan':>18} {'accuracy':>9} {'difference':>11} {'error':>7} {'most':>6}", flush=True)
    seeds = range(1, args.seeds + 1)
    single = [accuracy(["--batch", str(args.batch * args.members)], "auto", seed, args) for seed in seeds]
    print(f"{'one process':>18} {statistics.mean(single):>9.2f}", flush=True)
    with sbs.Lab(args.members, args.rate) as lab:
        for plan in args.plans:
            found = [accuracy([*lab.run_flags(), "--batch", str(args.batch)], plan, seed, args) for seed in seeds]
            by = [ours - theirs for ours, theirs in zip(found, single)]
            error = statistics.stdev(by) / len(by) ** 0.5 if len(by) > 1 else 0
            print(f"{plan:>18} {statistics.mean(found):>9.2f} {statistics.mean(by):>+11.2f} {error:>7.2f} {max(by, key=abs):>+6.2f}", flush=True)


if __name__ == "__main__":
    main()
