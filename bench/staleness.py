"""How stale what workers read is, by consistency, from real processes: the mean differential of clocks by the bound, and its distribution, drawn.

    python bench/staleness.py                                           32 worker processes over TCP on one machine; takes some minutes
    python bench/staleness.py --rate 1gbit --delay-ms 15 --clocks 200 --clock-ms 50 --drawing docs/images/staleness.svg     on hosts that are 15 ms away
    python bench/staleness.py --bosen PROGRAM                           Bösen beside it (built by bench/peers/bosen/build.sh outside this tree)
    python bench/staleness.py --quick                                   a smoke test

The differential of a read: the clocks of another worker that are in a row, less the reader's own clock. A slow worker reads of clocks ahead of
its own, so values above zero are those of slow readers. Beside it what the tables counted themselves (Table.telemetry()): by how many
clocks a row lacked some worker's increments. A clock's work is a pause; one in ten takes five times as long.
"""

from __future__ import annotations

import collections
import math
import pathlib
import sys

import bosen
import side_by_side as sbs
from drawing import FAINT, INK, Drawing

PROGRAM = str(sbs.BUILD / "bench" / "table" / "bench_table_staleness")
BOUNDS = [0, 1, 3, 7, 15, 31]
REACH = 63
COLOURS = {"ssp": "#c2571a", "essp": "#0b6e99"}


def moments(counts: list[int], first: int) -> tuple[float, float]:
    """Mean and standard deviation of a histogram whose first bin is `first`."""
    total = sum(counts)
    mean = sum((first + at) * count for at, count in enumerate(counts)) / total
    return mean, math.sqrt(sum((first + at - mean) ** 2 * count for at, count in enumerate(counts)) / total)


def collect(lines: list[dict], members: int) -> dict[str, dict]:
    """Sums over members, by consistency."""
    by_consistency = collections.defaultdict(list)
    for line in lines:
        if not line["right"]:
            sys.exit(f"bench: wrong counts under {line['consistency']}")
        by_consistency[line["consistency"]].append(line)
    collected = {}
    for consistency, of in by_consistency.items():
        if len(of) != members:
            sys.exit(f"bench: {len(of)} of {members} members told about {consistency}")
        seconds = sum(line["seconds"] for line in of)
        collected[consistency] = {"seen": [sum(bins) for bins in zip(*(line["seen"] for line in of))],
                                  "behind": [sum(bins) for bins in zip(*(line["behind"] for line in of))],
                                  "seconds": seconds / members, "waited": sum(sum(line["waited"].values()) for line in of) / seconds}
    return collected


def collect_bosen(lab: sbs.Lab, args) -> dict[str, dict]:
    collected = {}
    for consistency in [f"{name}:{bound}" for bound in args.bounds for name in bosen.MODELS]:
        of = bosen.run(lab, args.bosen, "staleness", consistency, args.clock_ms, args.clocks)
        if len(of) != lab.members or not all(line["right"] for line in of):
            sys.exit(f"bench: wrong counts by Bösen under {consistency}")
        collected[consistency] = {"seen": [sum(bins) for bins in zip(*(line["seen"] for line in of))], "seconds": sum(line["seconds"] for line in of) / lab.members}
    return collected


class Staleness(Drawing):
    """Means by bound on the left, dotted those of a peer, and distributions on the right."""

    def __init__(self, collected: dict[str, dict], peer: dict[str, dict], bounds: list[int], title: str):
        super().__init__(960, 520, title)
        self.collected, self.peer, self.bounds = collected, peer, bounds
        self.means(24 + 40, 80, 360, 400)
        shown = [bound for bound in bounds if bound in (3, 15, 31)] or bounds[-1:]
        for row, bound in enumerate(shown):
            self.distribution(500, 80 + row * 140, 420, 100, bound)

    def means(self, left: float, top: float, width: float, height: float) -> None:
        most = self.bounds[-1] or 1
        means, peers = ({name: [moments(of[f"{name}:{bound}"]["seen"], -REACH)[0] for bound in self.bounds] for name in COLOURS if of}
                        for of in (self.collected, self.peer))
        lowest = min(-1.0, -most / 4, *(value for of in (means, peers) for values in of.values() for value in values)) * 1.1

        def at(bound: float, mean: float) -> tuple[float, float]:
            return left + width * bound / most, top + height * mean / lowest

        self.text(left, top - 14, "mean differential, clocks, by the bound s")
        for mean in range(0, int(lowest) - 1, -2):
            self.line([at(0, mean), at(most, mean)], FAINT)
            self.text(left - 8, at(0, mean)[1] + 4, str(mean), "end")
        for bound in self.bounds:
            self.text(at(bound, 0)[0], top + height + 18, str(bound), "middle")
        self.line([at(0, 0), at(most, -most / 4)], INK, 'stroke-dasharray="5 5"')
        self.text(at(most, -most / 4)[0], at(most, -most / 4)[1] - 8, "-s/4", "end")
        for name, values in means.items():
            self.line([at(bound, mean) for bound, mean in zip(self.bounds, values)], COLOURS[name], 'stroke-width="2.5"')
            for bound, mean in zip(self.bounds, values):
                self.dot(at(bound, mean), COLOURS[name])
            self.text(left + 10, top + height - 30 + 18 * list(COLOURS).index(name), name + (", dotted: Bösen's" if peers else ""), colour=COLOURS[name], size=13)
        for name, values in peers.items():
            self.line([at(bound, mean) for bound, mean in zip(self.bounds, values)], COLOURS[name], 'stroke-width="2" stroke-dasharray="2 4"')

    def distribution(self, left: float, top: float, width: float, height: float, bound: int) -> None:
        shares = {name: [count / sum(of["seen"]) for count in of["seen"]] for name in COLOURS for of in [self.collected[f"{name}:{bound}"]]}
        most, reach = max(max(share) for share in shares.values()), 40

        def at(differential: float, share: float) -> tuple[float, float]:
            return left + width * (differential + reach) / (2 * reach), top + height * (1 - share / most)

        self.text(left, top - 14, f"reads by differential, s = {bound}; the highest step is {most:.0%} of them")
        for tick in range(-reach, reach + 1, 10):
            self.line([at(tick, 0), at(tick, most)], FAINT)
            self.text(at(tick, 0)[0], top + height + 15, str(tick), "middle", size=11)
        for name, share in shares.items():
            steps = []
            for differential in range(-reach, reach + 1):
                height_here = share[differential + REACH]
                steps += [at(differential - 0.5, height_here), at(differential + 0.5, height_here)]
            self.line(steps, COLOURS[name], 'stroke-width="1.8"')


def main() -> None:
    parser = sbs.options(__doc__)
    parser.set_defaults(members=32)
    parser.add_argument("--bounds", type=int, nargs="+", default=BOUNDS)
    parser.add_argument("--servers", type=int, default=2, help="of the members; all of them work")
    parser.add_argument("--clocks", type=int, default=300, help="of each worker, that count")
    parser.add_argument("--clock-ms", type=float, default=20)
    parser.add_argument("--delay-ms", type=float, default=0, help="of what is sent, one way; with --rate")
    parser.add_argument("--drawing", help="an SVG file")
    parser.add_argument("--bosen", type=pathlib.Path, metavar="PROGRAM")
    args = parser.parse_args()
    if args.quick:
        args.members, args.bounds, args.clocks, args.clock_ms, args.servers = 4, [0, 3], 50, 1, 1
    consistencies = ["bsp", *[f"{name}:{bound}" for bound in args.bounds for name in COLOURS], "async"]
    with sbs.Lab(args.members, args.rate, delay_ms=args.delay_ms) as lab:
        command = [PROGRAM, "--servers", str(args.servers), "--clocks", str(args.clocks), "--warmup", str(2 * args.bounds[-1] + 10),
                   "--clock-ms", str(args.clock_ms), "--consistency", *consistencies]
        peer = collect_bosen(lab, args) if args.bosen else {}
        lines = sbs.run_members(lab, command, {"SHOAL_SHARED_MEMORY": "0"}, timeout=3600)
    collected = collect(lines, args.members)
    links = f"{args.rate or 'one machine'}{f', {args.delay_ms:g} ms one way' if args.delay_ms else ''}"
    sbs.print_header(f"{args.members} worker processes over TCP, {links}, {args.clocks} clocks of {args.clock_ms:g} ms, "
                     "a tenth of them five times as long")
    print(f"{'':>8} {'seconds':>7} {'waited':>6} {'differential: mean':>18} {'deviation':>9} {'clocks behind (telemetry): mean':>31} {'deviation':>9} {'most':>4}")
    for consistency, of in collected.items():
        seen, behind = moments(of["seen"], -REACH), moments(of["behind"], 0)
        most = max(at for at, count in enumerate(of["behind"]) if count)
        print(f"{consistency:>8} {of['seconds']:>7.1f} {of['waited']:>6.0%} {seen[0]:>18.2f} {seen[1]:>9.2f} {behind[0]:>31.2f} {behind[1]:>9.2f} {most:>4}")
    for consistency, of in peer.items():
        mean, deviation = moments(of["seen"], -REACH)
        print(f"{consistency:>8} {of['seconds']:>7.1f} {'':>6} {mean:>18.2f} {deviation:>9.2f}  Bösen")
    if args.drawing:
        Staleness(collected, peer, args.bounds, f"How stale reads are: {args.members} worker processes over TCP").write(args.drawing)


if __name__ == "__main__":
    main()
