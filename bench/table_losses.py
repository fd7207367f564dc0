"""How long workers stand still when a member of a job that survives losses is killed (kill -9), and whether every sum is exact.

    python bench/table_losses.py                    3 servers and 3 workers on one machine, each killed in turn; then six members that are both
    python bench/table_losses.py --rate 200mbit     on hosts of a lab
    python bench/table_losses.py --silent           stopped, not killed: their connections stay open, so that only silence says it
    python bench/table_losses.py --quick            a smoke test

Known: from the kill until the last survivor knew. On: from when a worker knew until it has completed a clock, of the slowest one. Stood: the
longest that any worker was between two ticks, and beside it the same in a run in which nobody is killed.
"""

from __future__ import annotations

import sys

import side_by_side as sbs

PROGRAM = str(sbs.BUILD / "bench" / "table" / "bench_table_losses")


def run(lab: sbs.Lab, args, servers: int, victim: int | None) -> dict[str, float]:
    command = [PROGRAM, "--servers", str(servers), "--victim", str(args.members if victim is None else victim), "--consistency", args.consistency,
               "--rows", str(args.rows), "--kill-after", str(args.before), "--go-on", str(args.after), *(["--silent"] if args.silent else [])]
    lines = sbs.run_members(lab, command, {"SHOAL_ON_PEER_LOST": "shrink"}, timeout=120)
    survivors = [line for line in lines if "rank" in line]
    workers = [line for line in survivors if line["works"]]
    if len(survivors) != args.members - (victim is not None) or not all(line["right"] for line in survivors):
        sys.exit(f"bench: wrong sums, or not everybody was there in the end: {lines}")
    stood = max(line["stood"] for line in workers)
    if victim is None:
        return {"stood": stood, "clocks": max(line["clocks"] for line in workers)}
    killed = next(line for line in lines if "killed" in line)
    if not 0 <= workers[0]["of victim"] <= killed["begun"]:
        sys.exit(f"bench: {workers[0]['of victim']} clocks count of a worker that had begun {killed['begun']}")
    knew = max(line["knew"] for line in survivors)
    return {"known": knew - killed["killed"], "on": max(line["on"] - line["knew"] for line in workers), "stood": stood,
            **({} if victim < servers else {"cut": killed["begun"] - workers[0]["of victim"]})}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.set_defaults(members=6)
    parser.add_argument("--consistency", default="essp:3")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--before", type=float, default=1, help="seconds until the kill")
    parser.add_argument("--after", type=float, default=2, help="seconds that the others go on")
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    if args.silent:
        args.after += 8
    if args.quick:
        args.members, args.rounds, args.before, args.after = 4, 1, 0.3, 0.5 + 8 * args.silent
    half = args.members // 2
    turns = iter(range(10**6))
    with sbs.Lab(args.members, args.rate) as lab:
        variants = {
            "a server": lambda: run(lab, args, half, next(turns) % half),
            "a worker": lambda: run(lab, args, half, half + next(turns) % half),
            "one that is both": lambda: run(lab, args, 0, next(turns) % args.members),
            "nobody": lambda: run(lab, args, half, None),
            "nobody, all both": lambda: run(lab, args, 0, None),
        }
        figures = sbs.interleave(variants, args.rounds)
    sbs.print_header(f"{half} servers and {half} workers, or {args.members} that are both, {args.rate or 'one machine'}, {args.consistency}, "
                     f"{args.rows} rows a clock, {'stopped' if args.silent else 'killed'} {args.rounds} times each; all sums exact")
    for name, of in figures.items():
        shown = [f"{what} {1e3 * sbs.median(of[what]):.1f} ms ({sbs.spread([1e3 * value for value in of[what]])})"
                 for what in ("known", "on", "stood") if what in of]
        if "cut" in of:
            shown.append(f"clocks of the lost that do not count {max(of['cut']):.0f} at most")
        print(f"{name:>18}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
