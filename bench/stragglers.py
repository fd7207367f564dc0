"""Matrix factorization where now and then a worker is slow: seconds to a held-out error, by consistency, beside those of bsp.

    python bench/stragglers.py ratings.csv                  8 workers; one clock in ten takes five times as long
    python bench/stragglers.py ratings.csv --bosen PROGRAM  Bösen beside them (built by bench/peers/bosen/build.sh outside this tree)
    python bench/stragglers.py ratings.csv --quick          a smoke test

A clock's work is a pause, so that eight workers fit on two cores; the same clocks are slow by any consistency. Nobody could win more than the mean
of the slowest worker's clock over the mean clock, which is printed first.
"""

from __future__ import annotations

import math
import os
import pathlib
import sys

import bosen
import side_by_side as sbs

PROGRAM = str(sbs.BUILD / "bench" / "table" / "bench_table_stragglers")
CONSISTENCIES = ["bsp", "ssp:3", "essp:3", "ssp:15", "essp:15", "async"]


def reached(epochs: list[dict], target: float) -> float | None:
    """Seconds until the error was `target`, between two epochs on a straight line; None: it never was."""
    seconds, before = 0.0, None
    for epoch in epochs:
        if epoch["RMSE"] <= target:
            part = 1 if before is None else (before - target) / (before - epoch["RMSE"])
            return seconds + part * epoch["seconds"]
        seconds, before = seconds + epoch["seconds"], epoch["RMSE"]
    return None


def learn(lab: sbs.Lab, args, consistency: str) -> dict[str, float]:
    epochs = sbs.run_members(lab, [PROGRAM, os.path.abspath(args.ratings), "--consistency", consistency, "--epochs", str(args.epochs),
                                   "--batch", str(args.batch), "--clock-ms", str(args.clock_ms), "--slow", str(args.slow), "--factor", str(args.factor)])
    seconds = sum(epoch["seconds"] for epoch in epochs)
    return {**course(epochs, args, consistency), "waited": sum(epoch["waited"] for epoch in epochs) / seconds,
            "cores": sum(epoch["cpu"] for epoch in epochs) / seconds, "megabytes": sum(epoch["megabytes"] for epoch in epochs)}


def learn_bosen(lab: sbs.Lab, args, consistency: str) -> dict[str, float]:
    lines = bosen.run(lab, args.bosen, "stragglers", consistency, args.clock_ms, args.epochs, os.path.abspath(args.ratings))
    epochs = []
    for number in range(1, args.epochs + 1):
        of = [line for line in lines if line["epoch"] == number]
        epochs.append({"RMSE": math.sqrt(sum(line["squares"] for line in of) / sum(line["held_out"] for line in of)),
                       "seconds": max(line["seconds"] for line in of), "clocks": of[0]["clocks"]})
    return course(epochs, args, f"Bösen, {consistency}")


def course(epochs: list[dict], args, who: str) -> dict[str, float]:
    at = reached(epochs, args.target)
    if at is None:
        sys.exit(f"bench: {who} did not reach {args.target} in {args.epochs} epochs: {epochs[-1]['RMSE']:.4f}")
    return {"seconds": at, "RMSE": epochs[-1]["RMSE"], "clock": 1e3 * sum(epoch["seconds"] for epoch in epochs) / epochs[-1]["clocks"]}


def shown(of: dict[str, list[float]], figure: str, form: str) -> str:
    return format(sbs.median(of[figure]), form) if figure in of else ""


def main() -> None:
    parser = sbs.options(__doc__)
    parser.set_defaults(members=8)
    parser.add_argument("ratings")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--target", type=float, default=0.88, help="held-out error to reach")
    parser.add_argument("--batch", type=int, default=500, help="ratings of a member in a clock")
    parser.add_argument("--clock-ms", type=float, default=10)
    parser.add_argument("--slow", type=float, default=0.1, help="so many of all clocks are")
    parser.add_argument("--factor", type=float, default=5, help="a slow clock takes so many usual ones")
    parser.add_argument("--consistencies", nargs="+", default=CONSISTENCIES, help="the first is what the others are compared with")
    parser.add_argument("--bosen", type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--bosen-consistencies", nargs="+", default=["essp:0", "essp:3", "essp:15"])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.quick:
        args.members, args.epochs, args.clock_ms, args.target, args.rounds = 2, 1, 0.1, 9, 1
    with sbs.Lab(args.members, args.rate) as lab:
        variants = {name: lambda name=name: learn(lab, args, name) for name in args.consistencies}
        for name in args.bosen_consistencies if args.bosen else []:
            variants[f"bosen {name}"] = lambda name=name: learn_bosen(lab, args, name)
        figures = sbs.interleave(variants, args.rounds)
    sbs.print_header(f"{args.members} workers, {args.rate or 'one machine'}, clocks of {args.clock_ms:g} ms, {args.slow:.0%} of them {args.factor:g} times "
                     f"as long, {args.epochs} epochs, {args.rounds} rounds interleaved")
    slowest = 1 + (args.factor - 1) * (1 - (1 - args.slow) ** args.members)
    print(f"# nobody waits: at most {slowest / (1 + (args.factor - 1) * args.slow):.2f}x")
    print(f"{'':>14} {f's to {args.target:g}':>10} {'spread':>16} {'ratio':>7} {'spread':>12} {'ms a clock':>10} {'waited':>6} {'cores':>5} {'MB':>6} "
          f"{'RMSE':>7} {'spread':>15}")
    first = figures[args.consistencies[0]]["seconds"]
    for name, of in figures.items():
        ratios = [other / own for other, own in zip(first, of["seconds"])]
        print(f"{name:>14} {sbs.median(of['seconds']):>10.2f} {sbs.spread(of['seconds']):>16} {sbs.median(ratios):>6.2f}x "
              f"{f'{min(ratios):.2f}..{max(ratios):.2f}':>12} {sbs.median(of['clock']):>10.2f} "
              f"{shown(of, 'waited', '.0%'):>6} {shown(of, 'cores', '.2f'):>5} {shown(of, 'megabytes', '.1f'):>6} "
              f"{sbs.median(of['RMSE']):>7.4f} {sbs.spread(of['RMSE']):>15}")


if __name__ == "__main__":
    main()
