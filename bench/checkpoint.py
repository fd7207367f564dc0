"""What a checkpoint in the background adds to a training step: Shoal's beside PyTorch's async_save, the same training and cadence.

    python bench/checkpoint.py                         4 members, a state of 100 MB, saved every 20 steps, loopback
    python bench/checkpoint.py --rate 1gbit            on hosts of a lab
    python bench/checkpoint.py --folder /data/tmp      on that disk
    python bench/checkpoint.py --every 5               saved so often that what is added stands out of the noise of a busy machine
    python bench/checkpoint.py --quick                 a smoke test

One set of members trains in all ways in turns (bench/peers/checkpoint_member.py): without, with Shoal's, with PyTorch's checkpoints, those
at their best and as their documentation shows them. Added is the time of a step in a turn with checkpoints less that of the turn without in
the same round; where steps vary by more than that, it is noise, and the CPU that a save takes of all members says more. What was saved is
loaded and compared first.
"""

from __future__ import annotations

import statistics
import tempfile

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "checkpoint_member.py")
STORE_PORT = 29610


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--megabytes", type=float, default=100, help="of the state: parameters and Adam's moments")
    parser.add_argument("--every", type=int, default=20, help="steps from one checkpoint to the next")
    parser.add_argument("--saves", type=int, default=3, help="in a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where to save; default: the system's temporary folder")
    args = parser.parse_args()
    if args.quick:
        args.members, args.megabytes, args.every, args.saves, args.rounds = 2, 2, 3, 1, 1
    with sbs.Lab(args.members, args.rate) as lab, tempfile.TemporaryDirectory(dir=args.folder, prefix="shoal-bench-") as folder:
        command = [sbs.PYTHON, MEMBER, "--folder", folder, "--megabytes", str(args.megabytes), "--every", str(args.every),
                   "--saves", str(args.saves), "--rounds", str(args.rounds), "--store", f"{lab.address(0)}:{STORE_PORT}"]
        (line,) = sbs.run_members(lab, command, {"GLOO_SOCKET_IFNAME": lab.interface()}, timeout=1800)
    figures = line["figures"]
    sbs.print_header(f"{args.members} members, {args.rate or 'loopback'}, a state of {line['megabytes']:.0f} MB saved every {args.every} steps, "
                     f"{args.saves} times a turn, {args.rounds} rounds of turns")
    print(f"{'way':<8} {'ms a step':>10} {'spread':>18} {'added ms':>9} {'quartiles':>16} {'call ms':>8} {'drain ms':>9} "
          f"{'CPU ms a save':>14}")
    added = {way: [step - plain for step, plain in zip(of_way["step"], figures["none"]["step"])] for way, of_way in figures.items()}
    for way, of_way in figures.items():
        print(f"{way:<8} {sbs.median(of_way['step']):>10.2f} {sbs.spread(of_way['step']):>18} {sbs.median(added[way]):>9.2f} "
              f"{quartiles(added[way]):>16} {sbs.median(of_way['call']):>8.1f} {sbs.median(of_way['drain']):>9.1f} "
              f"{sbs.median(of_way['cpu']):>14.0f}")
    for peer in ("torch", "default"):
        ratios = {"added to a step": sbs.median(added["shoal"]) / sbs.median(added[peer])}
        for figure, name in (("call", "the call that saves"), ("cpu", "CPU a save")):
            ratios[name] = sbs.median(figures["shoal"][figure]) / sbs.median(figures[peer][figure])
        print(f"Shoal's over {peer}: {', '.join(f'{name} {ratio:.2f}' for name, ratio in ratios.items())} (of medians)")


def quartiles(values: list[float]) -> str:
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{low:.3g}..{high:.3g}"


if __name__ == "__main__":
    main()
