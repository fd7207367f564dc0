"""Multiclass logistic regression of real rows by how weights are shared, beside ps-lite's sparse keys and Bösen's rows: seconds and bytes an epoch.

    python bench/linear.py sector.scale --rate 10mbit --pslite PROGRAM --bosen PROGRAM      four hosts; rows, factors, what auto takes, and peers
    python bench/linear.py sector.scale --quick                                             a smoke test

Under bsp all take the same steps, so the ratio of epochs is that of the times to any accuracy; --accuracy also finds after how many epochs the rows that are learnt from are
told apart so well. The programs are bench/peers/pslite_linear.cc and bench/peers/bosen/member.cc, compiled with ps-lite and Bösen outside this tree. Bytes are those of the hosts' interfaces.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bosen
import pslite
import side_by_side as sbs

VARIANTS = {"rows": ("rows", "bsp"), "factors": ("factors", "bsp"), "auto": ("auto", "bsp"), "factors, ssp:3": ("factors", "ssp:3"),
            "factors:halton, ssp:3": ("factors:halton", "ssp:3"), "factors:fitted:2, ssp:3": ("factors:fitted:2", "ssp:3"), "rows, ssp:3": ("rows", "ssp:3")}


def measured(lab: sbs.Lab, args, run) -> dict[str, float]:
    before = lab.transmitted()
    epochs = run()
    sent = [after - then for after, then in zip(lab.transmitted(), before)]
    if len(epochs) != args.epochs:
        sys.exit(f"bench: {len(epochs)} epochs of {args.epochs}")
    figures = {"seconds": sum(epoch["seconds"] for epoch in epochs) / args.epochs, "megabytes": sum(sent) / max(len(sent), 1) / 1e6 / args.epochs}
    if "waited_s" in epochs[0]:
        figures["waited"] = sum(epoch["waited_s"] for epoch in epochs) / args.epochs
    for name in ("training log loss", "own loss", "held-out accuracy"):
        if name in epochs[-1]:
            figures[name] = epochs[-1][name]
    return figures


def train(args, lab: sbs.Lab, sharing: str, consistency: str, folder: str, epochs: int) -> list[dict]:
    return sbs.run_members(lab, [sbs.shoal(), "linear", "train", os.path.abspath(args.rows), "--epochs", str(epochs), "--batch", str(args.batch), "--l2", "0", "--sharing",
                                 sharing, "--consistency", consistency, "--json", "--output", f"{folder}/model"], {"SHOAL_SHARED_MEMORY": "0"}, timeout=1800)


def run_shoal(lab: sbs.Lab, args, sharing: str, consistency: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return measured(lab, args, lambda: [line for line in train(args, lab, sharing, consistency, folder, args.epochs) if "epoch" in line])


def run_pslite(lab: sbs.Lab, args) -> dict[str, float]:
    """A server and a worker on each host."""
    hosts = list(range(args.members))
    arguments = [os.path.abspath(args.rows), str(args.epochs), str(args.batch)]
    return measured(lab, args, lambda: pslite.run(lab, args.pslite, hosts, hosts, arguments, timeout=1800))


def run_bosen(lab: sbs.Lab, args) -> dict[str, float]:
    """Each host's client serves and works; servers push what clients have read, and bound 0 has them wait for all others as bsp does."""
    return measured(lab, args, lambda: bosen.run(lab, args.bosen, "linear", "essp:0", 0, args.epochs, os.path.abspath(args.rows), str(args.batch), timeout=1800))


def epochs_to(args) -> int:
    """Epochs of one member until so many of the rows that are learnt from are told apart."""
    with tempfile.TemporaryDirectory() as folder:
        for epochs in range(1, 201):
            command = [sbs.shoal(), "linear", "train", os.path.abspath(args.rows), "--epochs", str(epochs), "--batch", str(args.batch), "--l2", "0", "--output", f"{folder}/model", "--resume"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            shown = subprocess.run([sbs.shoal(), "linear", "evaluate", os.path.abspath(args.rows), "--model", f"{folder}/model", "--json"], check=True, capture_output=True, text=True)
            if json.loads(shown.stdout)["accuracy"] >= args.accuracy:
                return epochs
    sys.exit(f"bench: not {args.accuracy} in 200 epochs")


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("rows")
    parser.add_argument("--pslite", type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--bosen", type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--batch", type=int, default=200, help="rows of all members together in a clock")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--accuracy", type=float, help="find the number of epochs, too")
    args = parser.parse_args()
    if args.quick:
        args.members, args.epochs, args.rounds, args.variants = 2, 1, 1, ["rows", "factors"]
    with sbs.Lab(args.members, args.rate) as lab:
        variants = {name: lambda name=name: run_shoal(lab, args, *VARIANTS[name]) for name in args.variants}
        if args.pslite:
            variants["ps-lite"] = lambda: run_pslite(lab, args)
        if args.bosen:
            variants["Bösen"] = lambda: run_bosen(lab, args)
        peers = [name for name in variants if name not in VARIANTS]
        figures = sbs.interleave(variants, args.rounds)
    sbs.print_header(f"{args.members} members, {args.rate or 'loopback'}, {args.batch} rows a clock, {args.epochs} epochs, {args.rounds} rounds")
    if args.accuracy:
        print(f"{epochs_to(args)} epochs to an accuracy of {args.accuracy}")
    for name, of in figures.items():
        line = f"{name:<22} {sbs.median(of['seconds']):8.3f} s an epoch ({sbs.spread(of['seconds'])}), {sbs.median(of['megabytes']):8.2f} MB a host"
        for peer in peers if name in VARIANTS else []:
            line += f", {peer} takes {sbs.paired_ratio(figures[peer]['seconds'], of['seconds']):.2f}x the time"
            line += f" and {sbs.paired_ratio(figures[peer]['megabytes'], of['megabytes']):.2f}x the bytes" if args.rate else ""
        line += f", {sbs.median(of['waited']):.3f} s of them waited" if "waited" in of else ""
        for loss in "training log loss", "own loss":
            line += f"; {loss} {sbs.median(of[loss]):.4f}" if loss in of else ""
        print(line)


if __name__ == "__main__":
    main()
