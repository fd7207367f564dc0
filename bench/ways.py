"""Seconds a step and bytes a step by each way of a gradient, the lossy ones too: fcnet, and a network behind a large embedding.

    python bench/ways.py --rate 200mbit -n 4
    python bench/ways.py --rate 50mbit --models fcnet --ways auto direct int8
    python bench/ways.py --quick                                 a smoke test

The members train by all ways in turns (bench/peers/ways_member.py). What a lossy way costs in accuracy is another figure: see
docs/training-measured.md for runs to one.
"""

from __future__ import annotations

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "ways_member.py")
WAYS = ["direct", "auto", "bf16", "int8", "topk:0.01", "topk:0.001", "powersgd:1", "powersgd:4"]


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--models", nargs="+", default=["fcnet", "table"])
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=5, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.quick:
        args.members, args.steps, args.rounds, args.models, args.ways = 2, 1, 1, ["table"], ["auto", "int8"]
    sbs.print_header(f"{args.members} members, {args.rate or 'loopback'}, {args.batch} samples a member: ms a step, MB a member sends a step")
    print(f"{'model':>6} {'way':>12} {'ms':>9} {'spread':>18} {'MB':>8} {'to the first way':>17}  what the plan made of it")
    for model in args.models:
        with sbs.Lab(args.members, args.rate) as lab:
            command = [sbs.PYTHON, MEMBER, "--model", model, "--ways", *args.ways, "--batch", str(args.batch), "--steps", str(args.steps),
                       "--rounds", str(args.rounds)]
            (line,) = sbs.run_members(lab, command, timeout=1800)
        for way in args.ways:
            of = line[way]
            ms = [1e3 * seconds for seconds in of["seconds"]]
            print(f"{model:>6} {way:>12} {sbs.median(ms):>9.1f} {sbs.spread(ms):>18} {of['bytes'] / 1e6:>8.2f} "
                  f"{sbs.paired_ratio(line[args.ways[0]]['seconds'], of['seconds']):>16.2f}x  {of['plan']}", flush=True)


if __name__ == "__main__":
    main()
