"""Sharded training with FSDP2 on Shoal's backend beside gloo: a transformer of 4 blocks of width 192, by link rate.

    python bench/fsdp.py                                four hosts at 200 and 1000 Mbit/s
    python bench/fsdp.py --rates 200mbit --rounds 9
    python bench/fsdp.py --quick                        a smoke test

The members train on both in turns (bench/peers/fsdp_member.py), after their losses have been compared.
"""

from __future__ import annotations

import argparse

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "fsdp_member.py")
STORE_PORT = 29600


def compare(rate: str | None, args: argparse.Namespace) -> None:
    with sbs.Lab(args.members, rate) as lab:
        command = [sbs.PYTHON, MEMBER, "--steps", str(args.steps), "--rounds", str(args.rounds), "--batch", str(args.batch),
                   "--store", f"{lab.address(0)}:{STORE_PORT}"]
        (line,) = sbs.run_members(lab, command, {"GLOO_SOCKET_IFNAME": lab.interface()}, timeout=1800)
    times, cpu = line["times"], line["cpu"]
    ours, theirs = ([1e3 * seconds for seconds in times[way]] for way in ("shoal", "gloo"))
    # Every member gathers what it has not, forwards and backwards, and gives away the gradients of what it keeps no part of.
    floor = 3 * 4 * line["parameters"] * (args.members - 1) / args.members * 8 / bits(rate) * 1e3 if rate else 0.0
    print(f"{rate or 'loopback':>9} {args.members:>2} {sbs.median(ours):>9.1f} {sbs.spread(ours):>15} {sbs.median(theirs):>9.1f} "
          f"{sbs.spread(theirs):>15} {floor:>9.1f} {sbs.paired_ratio(theirs, ours):>9.3f}x {sbs.paired_ratio(cpu['gloo'], cpu['shoal']):>8.2f}x "
          f"{line['loss']:>9.6f}", flush=True)


def bits(rate: str) -> float:
    number, unit = rate.removesuffix("bit")[:-1], rate.removesuffix("bit")[-1]
    return float(number) * {"m": 1e6, "g": 1e9}[unit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", default=["200mbit", "1gbit"])
    parser.add_argument("-n", "--members", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4, help="texts a member")
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    args = parser.parse_args()
    if args.quick:
        args.rates, args.members, args.batch, args.steps, args.rounds = [None], 2, 1, 2, 1
    sbs.print_header(f"FSDP2, ms a step, batch {args.batch} a member, medians of {args.rounds} rounds of turns; ratios above 1: we are faster")
    print(f"{'rate':>9} {'N':>2} {'shoal ms':>9} {'spread':>15} {'gloo ms':>9} {'spread':>15} {'links ms':>9} {'gloo/ours':>10} {'cpu':>9} {'loss':>9}")
    for rate in args.rates:
        compare(rate, args)


if __name__ == "__main__":
    main()
