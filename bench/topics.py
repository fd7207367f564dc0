"""Topic models beside WarpLDA, MALLET, tomotopy and LightLDA: after how long ours foretells held-out words as well as each of theirs does, and has the log-likelihood
of its topics; what it has reached when a peer ends; how many tokens a second are drawn when topics have settled.

    python bench/topics.py TRAIN --heldout H1 H2 --warplda FOLDER -k 1000        TRAIN, H1, H2: as bench/topics_texts.py makes them
    python bench/topics.py TRAIN -k 100 --tomotopy PYTHON                        PYTHON has tomotopy
    python bench/topics.py TRAIN --mallet PROGRAM --lightlda FOLDER              all that are named take turns
    python bench/topics.py TRAIN ... --drawing FILE.svg                          log-likelihood over seconds of all
    python bench/topics.py TRAIN --warplda FOLDER --proposals 1 --threads 1 --sweeps shoal=100      tokens a second of a core
    python bench/topics.py TRAIN --quick                                         a smoke test; peers that are named run a few sweeps

bench/peers/topics builds the peers outside this tree. All begin with random topics and keep their priors. Times are those of sweeps alone, as each says them; `shoal
topics` judges what all have reached. Settled means the last sweeps (--settled): in the first ones most tokens move, and rows are long. MALLET's threads draw from
counts of others that are as old as a sweep: --mallet-threads 1 2 races both. inf: not reached in the sweeps that ours had.
"""

from __future__ import annotations

import math
import pathlib
import tempfile

import side_by_side as sbs
import topic_peers
from drawing import FAINT, INK, Drawing

SWEEPS = {"shoal": 80, "warplda": 100, "mallet": 20, "tomotopy": 20, "lightlda": 6}
COLOURS = {"Shoal": "#0b6e99", "WarpLDA": "#c2571a", "MALLET": "#5b8c2a", "tomotopy": "#7a4fa3", "LightLDA": "#8a6d00"}
BETTER = {"perplexity": lambda ours, theirs: ours <= theirs, "log-likelihood": lambda ours, theirs: ours >= theirs}
Curve = list[tuple[float, float]]  # seconds, log-likelihood


def shoal(task: topic_peers.Task, sweeps: int, settled: int, targets: dict[str, dict[str, float]], curve: Curve) -> dict[str, float]:
    """targets: what each peer has reached in this turn. Leaves what it had at each look in `curve`."""
    options = {"format": "yahoo", "topics": task.topics, "sweeps": sweeps, "threads": task.threads, "look-every": 2, "keep-every": 0}
    with tempfile.TemporaryDirectory(dir=task.folder) as model:
        command = [sbs.shoal(), "topics", "train", task.train, "--fixed-prior", "--json", "--output", f"{model}/model", *topic_peers.flags("--", options),
                   *task.prior(), *(["--heldout", *task.heldout] if task.heldout else ["--test-share", "0"])]
        looks = topic_peers.lines_of(topic_peers.run(command))
    for look in looks:
        look["log-likelihood"] = look["log_likelihood"]
    curve[:] = [(look["seconds"], look["log-likelihood"]) for look in looks]
    figures = {"seconds": looks[-1]["seconds"], "log-likelihood": looks[-1]["log-likelihood"],
               "M tokens/s, settled": sbs.median([look["tokens_per_s"] / 1e6 for look in looks if look["sweep"] > sweeps - settled])}
    if task.heldout:
        figures["perplexity"] = looks[-1]["perplexity"]
    for name, target in targets.items():
        for figure in set(BETTER) & set(target):
            figures[f"seconds to the {figure} of {name}"] = next((look["seconds"] for look in looks if BETTER[figure](look[figure], target[figure])), math.inf)
        figures[f"log-likelihood after the time of {name}"] = max((value for seconds, value in curve if seconds <= target["seconds"]), default=-math.inf)
    return figures


class Race(Drawing):
    """Log-likelihood over seconds, which are logarithmic: some take a hundred times as long as others."""

    def __init__(self, curves: dict[str, Curve], title: str):
        super().__init__(960, 520, title)
        left, top, width, height = 70, 70, 700, 390
        curves = {name: [point for point in curve if point[0] > 0] for name, curve in curves.items()}  # MALLET says whole seconds
        curves = {name: curve for name, curve in curves.items() if curve}
        points = [point for curve in curves.values() for point in curve]
        begin, end = (math.log10(of(seconds for seconds, _ in points)) for of in (min, max))
        lowest, highest = math.floor(min(value for _, value in points)), math.ceil(max(value for _, value in points))

        def at(seconds: float, value: float) -> tuple[float, float]:
            return left + width * (math.log10(seconds) - begin) / (end - begin), top + height * (highest - value) / (highest - lowest)

        self.text(left, top - 14, "log-likelihood a token, by seconds of sweeps")
        for value in range(lowest, highest + 1):
            self.line([at(10**begin, value), at(10**end, value)], FAINT)
            self.text(left - 8, at(10**begin, value)[1] + 4, str(value), "end")
        for tick in (digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)):
            if 10**begin <= tick <= 10**end:
                self.line([at(tick, lowest), at(tick, highest)], FAINT)
                self.text(at(tick, lowest)[0], top + height + 18, f"{tick:g}", "middle")
        lowest_label = -math.inf
        for name, curve in sorted(curves.items(), key=lambda of: at(*of[1][-1])[1]):
            colour = COLOURS[name.split(",")[0]]
            self.line([at(*point) for point in curve], colour, 'stroke-width="2.5"' + (' stroke-dasharray="6 4"' if name.endswith(("1 thread", "1 proposal")) else ""))
            for point in curve if name != "Shoal" else ():
                self.dot(at(*point), colour)
            lowest_label = max(at(*curve[-1])[1] + 4, lowest_label + 16)  # names do not lie on each other
            self.text(left + width + 12, lowest_label, name, colour=colour, size=13)
        self.line([at(10**begin, lowest), at(10**end, lowest)], INK)


def racers(args, task: topic_peers.Task) -> dict[str, tuple[object, int]]:
    """The peers that were named, and how many sweeps each is given."""
    found = []
    if args.warplda:
        found.append((topic_peers.WarpLda(task, args.warplda, args.proposals, args.settled), args.sweeps["warplda"]))
    if args.mallet:
        found += [(topic_peers.Mallet(task, args.mallet, threads), args.sweeps["mallet"]) for threads in args.mallet_threads or [args.threads]]
    if args.tomotopy:
        found.append((topic_peers.Tomotopy(task, args.tomotopy), args.sweeps["tomotopy"]))
    if args.lightlda:
        found.append((topic_peers.LightLda(task, args.lightlda), args.sweeps["lightlda"]))
    return {peer.name: (peer, sweeps) for peer, sweeps in found}


def parts(sweeps: int) -> list[int]:
    """Sweeps after which a drawing shows a peer, beside all: peers say what they have only at their end, so each is a run of its own."""
    return sorted({max(1, sweeps // part) for part in (8, 4, 2)} - {sweeps})


def print_ratios(figures: dict[str, dict[str, list[float]]]) -> None:
    ours = figures["Shoal"]
    for name, theirs in figures.items():
        if name == "Shoal":
            continue
        for figure in BETTER:
            if figure in theirs:
                seconds = ours[f"seconds to the {figure} of {name}"]
                missed = seconds.count(math.inf)  # a ratio of 0
                print(f"{name}: its time over ours to its {figure}: {sbs.paired_ratio(theirs['seconds'], seconds):.2f}"
                      + (f", not reached in {missed} of {len(seconds)} rounds" if missed else ""))
        after = ours[f"log-likelihood after the time of {name}"]
        print(f"{name}: log-likelihood after its time: {sbs.median(theirs['log-likelihood']):.4f}, ours {sbs.median(after):.4f}")
        rate = "M tokens/s, settled"
        if rate in theirs:
            print(f"{name}: our tokens/s over its, settled: {sbs.paired_ratio(ours[rate], theirs[rate]):.2f}")


def sweeps_of(word: str) -> tuple[str, int]:
    name, _, number = word.partition("=")
    if name not in SWEEPS:
        raise ValueError(name)
    return name, int(number)


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("train")
    parser.add_argument("--heldout", nargs=2)
    parser.add_argument("--warplda", metavar="FOLDER", help="of its programs")
    parser.add_argument("--proposals", type=int, default=4, choices=(1, 4), help="of WarpLDA's passes; as released: 1")
    parser.add_argument("--mallet", metavar="PROGRAM")
    parser.add_argument("--mallet-threads", type=int, nargs="+", help="default: as --threads")
    parser.add_argument("--tomotopy", metavar="PYTHON")
    parser.add_argument("--lightlda", metavar="FOLDER", help="of its programs")
    parser.add_argument("-k", "--topics", type=int, default=1000)
    parser.add_argument("--alpha-sum", type=float, default=50)
    parser.add_argument("--beta", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sweeps", type=sweeps_of, nargs="+", default=[], metavar="NAME=N", help=f"default: {' '.join(f'{name}={of}' for name, of in SWEEPS.items())}")
    parser.add_argument("--settled", type=int, default=20, help="sweeps, the last ones of each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--drawing", help="an SVG file")
    args = parser.parse_args()
    args.sweeps = {**SWEEPS, **dict(args.sweeps)}
    if args.quick:
        args.topics, args.rounds, args.sweeps = 50, 1, dict.fromkeys(SWEEPS, 4)
    with tempfile.TemporaryDirectory() as folder:
        task = topic_peers.Task(args.train, args.heldout, args.topics, args.alpha_sum, args.beta, args.threads, pathlib.Path(folder))
        peers = racers(args, task)
        reached: dict[str, dict[str, float]] = {}  # of each peer in this turn
        curve: Curve = []

        def turn(name: str) -> dict[str, float]:
            peer, sweeps = peers[name]
            reached[name] = peer(sweeps)
            return reached[name]

        variants = {name: (lambda name=name: turn(name)) for name in peers}
        variants["Shoal"] = lambda: shoal(task, args.sweeps["shoal"], args.settled, reached, curve)
        figures = sbs.interleave(variants, args.rounds)
        if args.drawing:
            earlier = {name: [peer(some) for some in parts(sweeps)] for name, (peer, sweeps) in peers.items()}
            curves = {name: [(of["seconds"], of["log-likelihood"]) for of in [*earlier[name], reached[name]]] for name in peers}
            Race({**curves, "Shoal": curve}, f"{pathlib.Path(args.train).stem}, {args.topics} topics, {args.threads} threads").write(args.drawing)
    given = ", ".join(f"{sweeps} sweeps of {name}" for name, (_, sweeps) in peers.items())
    sbs.print_header(f"{pathlib.Path(args.train).name}, {args.topics} topics, {args.threads} threads, {given or 'no peer'}, {args.rounds} rounds")
    for name, of in figures.items():
        print(f"{name}:" + "".join(f"  {key} {sbs.median(values):.5g} ({sbs.spread(values)})" for key, values in of.items()))
    print_ratios(figures)


if __name__ == "__main__":
    main()
