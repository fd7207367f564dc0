"""How long survivors wait for a member that was killed (kill -9) in the middle of training, and how long until all have ended.

    python bench/failure.py                    10 kills on loopback, every rank in turn
    python bench/failure.py --rate 200mbit     on hosts of a lab, where gradients are under way at the kill
    python bench/failure.py --quick            a smoke test
"""

from __future__ import annotations

import sys
import time

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "killed_member.py")


def kill_one(lab: sbs.Lab, victim: int, model: str) -> dict[str, float]:
    """Seconds from the kill to the last survivor's exception, and to the end of `shoal run`."""
    lines = sbs.run_members(lab, [sbs.PYTHON, MEMBER, "--victim", str(victim), "--model", model], timeout=120, status=3)
    ended = time.monotonic()
    killed, saw = ([line[word] for line in lines if word in line] for word in ("killed", "saw"))
    if len(killed) != 1 or len(saw) != lab.members - 1:
        sys.exit(f"bench: not every survivor lost rank {victim}: {lines}")
    return {"raised": max(saw) - killed[0], "ended": ended - killed[0]}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--model", default="mlp", help="of bench/peers/models.py")
    parser.add_argument("--kills", type=int, default=10)
    args = parser.parse_args()
    if args.quick:
        args.members, args.kills = 2, 1
    with sbs.Lab(args.members, args.rate) as lab:
        figures = [kill_one(lab, kill % args.members, args.model) for kill in range(args.kills)]
    sbs.print_header(f"{args.members} members training {args.model}, {args.rate or 'loopback'}, one killed, {args.kills} times, every rank in turn")
    for name, what in (("raised", "until the last survivor raised PeerLost"), ("ended", "until every process had ended")):
        values = [1e3 * figure[name] for figure in figures]
        print(f"{what:<42} median {sbs.median(values):.0f} ms ({sbs.spread(values)})")


if __name__ == "__main__":
    main()
