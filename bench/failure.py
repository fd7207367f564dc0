"""How long survivors wait for a member that was killed (kill -9) in the middle of training, and how long until all have ended.

    python bench/failure.py                    10 kills on loopback, every rank in turn
    python bench/failure.py --rate 200mbit     on hosts of a lab, where gradients are under way at the kill
    python bench/failure.py --go-on            the others go on: how long until they have taken the step in which it was killed
    python bench/failure.py --go-on --stop     the same when it is stopped (SIGSTOP), and not killed
    python bench/failure.py --sum 64MB --rate 1gbit --kills 50    in the middle of a sum: until survivors know, until they have the next sum
    python bench/failure.py --quick            a smoke test
"""

from __future__ import annotations

import sys
import time

import side_by_side as sbs
from allreduce import parse_size

MEMBER = str(sbs.ROOT / "bench" / "peers" / "killed_member.py")


def kill_one(lab: sbs.Lab, victim: int, model: str) -> dict[str, float]:
    """Seconds from the kill to the last survivor's exception, and to the end of `shoal run`."""
    lines = sbs.run_members(lab, [sbs.PYTHON, MEMBER, "--victim", str(victim), "--model", model], timeout=120, status=3)
    ended = time.monotonic()
    killed, saw = ([line[word] for line in lines if word in line] for word in ("killed", "saw"))
    if len(killed) != 1 or len(saw) != lab.members - 1:
        sys.exit(f"bench: not every survivor lost rank {victim}: {lines}")
    return {"raised": max(saw) - killed[0], "ended": ended - killed[0]}


def lose_one(lab: sbs.Lab, victim: int, model: str, stop: bool) -> dict[str, float]:
    """Seconds from the kill, or stop, until the last survivor had taken the step in which it fell, and of a usual step."""
    command = [sbs.PYTHON, MEMBER, "--victim", str(victim), "--model", model, *(["--stop"] if stop else [])]
    lines = sbs.run_members(lab, command, {"SHOAL_ON_PEER_LOST": "shrink"}, timeout=120)
    killed = [line["killed"] for line in lines if "killed" in line]
    told = [line for line in lines if "steps" in line]
    left = [rank for rank in range(lab.members) if rank != victim]
    if len(killed) != 1 or [line["left"] for line in told] != [left] * len(left):
        sys.exit(f"bench: not every survivor went on without rank {victim}: {lines}")
    usual = sbs.median([after - before for line in told for before, after in zip(line["steps"][3:7], line["steps"][4:8])])
    return {"taken": max(next(end for end in line["steps"] if end > killed[0]) for line in told) - killed[0], "usual": usual}


def lose_in_sum(lab: sbs.Lab, victim: int, at: float, size: int) -> dict[str, float]:
    """Seconds from the kill until the last survivor knew, and until all had the first sum after it; and of a sum with all."""
    program = sbs.BUILD / "bench" / "collective" / "bench_allreduce"
    command = [str(program), "--sizes", str(size), "--kill", str(victim), "--at", str(at)]
    lines = sbs.run_members(lab, command, {"SHOAL_ON_PEER_LOST": "shrink"}, timeout=300)
    killed = [line["killed"] for line in lines if "killed" in line]
    told = [line for line in lines if "ends" in line]
    if len(killed) != 1 or len(told) != lab.members - 1:
        sys.exit(f"bench: not every survivor went on without rank {victim}: {lines}")
    next_sum = max(next(end for end in line["ends"] if end > killed[0]) for line in told)
    return {"known": max(line["known"] for line in told) - killed[0], "next": next_sum - killed[0], "usual": max(line["usual"] for line in told)}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--model", default="mlp", help="of bench/peers/models.py")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--go-on", action="store_true", help="the others go on")
    parser.add_argument("--stop", action="store_true", help="with --go-on: it is stopped and not killed")
    parser.add_argument("--sum", type=parse_size, help="no training: sums of so many bytes")
    args = parser.parse_args()
    if args.quick:
        args.members, args.kills = 2, 1
    with sbs.Lab(args.members, args.rate) as lab:
        def lose(kill: int) -> dict[str, float]:
            victim = kill % args.members
            if args.sum:
                return lose_in_sum(lab, victim, (kill + 0.5) / args.kills, args.sum)
            return lose_one(lab, victim, args.model, args.stop) if args.go_on else kill_one(lab, victim, args.model)

        figures = [lose(kill) for kill in range(args.kills)]
    what = f"adding {args.sum} bytes" if args.sum else f"training {args.model}"
    sbs.print_header(f"{args.members} members {what}, {args.rate or 'loopback'}, one {'stopped' if args.stop else 'killed'}, {args.kills} times, every rank in turn")
    ended = (("raised", "until the last survivor raised PeerLost"), ("ended", "until every process had ended"))
    went_on = (("taken", "until all survivors had taken the step"), ("usual", "a usual step"))
    summed = (("known", "until all survivors knew"), ("next", "until all had the next sum"), ("usual", "a sum with all"))
    for name, what in summed if args.sum else went_on if args.go_on else ended:
        values = [1e3 * figure[name] for figure in figures]
        print(f"{what:<42} median {sbs.median(values):.0f} ms ({sbs.spread(values)})")


if __name__ == "__main__":
    main()
