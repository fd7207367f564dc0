"""What packing (docs/ways.md) leaves of the bytes of real training, and what it saves: the same run with it and without, in turns.

    python bench/packed.py --rate 200mbit -n 4 --models lenet fcnet resnet-20
    python bench/packed.py --rate 200mbit --models char-transformer --data input.txt --batch 8 --plans auto ring
    python bench/packed.py --quick                               a smoke test
"""

from __future__ import annotations

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "packed_member.py")


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--models", nargs="+", default=["lenet", "fcnet", "resnet-20"])
    parser.add_argument("--data", default="synthetic", help="where their data is")
    parser.add_argument("--plans", nargs="+", default=["ring", "auto"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--warmup", type=int, default=6)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.quick:
        args.members, args.rate, args.warmup, args.steps, args.rounds, args.models, args.plans = 2, None, 1, 1, 1, ["lenet"], ["ring"]
    sbs.print_header(f"{args.members} members, {args.rate or 'loopback'}, {args.batch} samples a member: ms a step, medians of {args.rounds} runs; left: of the bytes sent")
    print(f"{'model':>16} {'plan':>6} {'packed ms':>10} {'spread':>18} {'as they are':>11} {'faster':>8} {'left':>6}")
    for model in args.models:
        for plan in args.plans:
            runs: dict[str, list[dict]] = {"auto": [], "never": []}
            for _ in range(args.rounds):
                for packing, of in runs.items():
                    with sbs.Lab(args.members, args.rate) as lab:
                        command = [sbs.PYTHON, MEMBER, "--model", model, "--data", args.data, "--plan", plan, "--batch", str(args.batch),
                                   "--warmup", str(args.warmup), "--steps", str(args.steps)]
                        of += sbs.run_members(lab, command, {"SHOAL_PACKING": packing}, timeout=1800)
            packed, plain = ([1e3 * one["seconds"] for one in of] for of in runs.values())
            left = [1 - one["saved"] / one["sent"] for one in runs["auto"]]
            print(f"{model:>16} {plan:>6} {sbs.median(packed):>10.1f} {sbs.spread(packed):>18} {sbs.median(plain):>11.1f} "
                  f"{sbs.paired_ratio(plain, packed):>7.3f}x {sbs.median(left):>6.3f}", flush=True)


if __name__ == "__main__":
    main()
