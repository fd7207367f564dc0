"""Matrix factorization of real ratings on hosts of a lab, by consistency: seconds an epoch, and the held-out error at the end.

    python bench/factorize.py ratings.csv --rate 100mbit     four hosts, each consistency in turn
    python bench/factorize.py ratings.csv --quick            a smoke test
"""

from __future__ import annotations

import os
import sys
import tempfile

import side_by_side as sbs

CONSISTENCIES = ["bsp", "ssp:3", "essp:3", "async"]


def learn(lab: sbs.Lab, args, consistency: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        lines = sbs.run_members(lab, [sbs.shoal(), "factorize", "train", os.path.abspath(args.ratings), "--epochs", str(args.epochs), "--consistency", consistency,
                                      "--json", "--output", f"{folder}/model"])
    epochs = [line for line in lines if "epoch" in line]
    if len(epochs) != args.epochs:
        sys.exit(f"bench: {len(epochs)} epochs of {args.epochs}")
    seconds = sum(epoch["seconds"] for epoch in epochs)
    return {"seconds": seconds / args.epochs, "rows": sum(epoch["waited_s"] for epoch in epochs) / seconds, "RMSE": epochs[-1]["held-out RMSE"]}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("ratings")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.members, args.epochs, args.rounds = 2, 2, 1
    with sbs.Lab(args.members, args.rate) as lab:
        figures = sbs.interleave({name: lambda name=name: learn(lab, args, name) for name in CONSISTENCIES}, args.rounds)
    sbs.print_header(f"{args.members} members, {args.rate or 'loopback'}, {args.epochs} epochs of rank 32, {args.rounds} rounds")
    for name, figure in figures.items():
        print(f"{name:<8} {sbs.median(figure['seconds']):6.3f} s an epoch ({sbs.spread(figure['seconds'])}), {sbs.median(figure['rows']):4.0%} for shared rows, "
              f"held-out RMSE {sbs.median(figure['RMSE']):.4f}")


if __name__ == "__main__":
    main()
