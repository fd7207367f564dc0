"""What fitted priors foretell, beside MALLET's: held-out perplexity after equally many sweeps, with priors kept and fitted, by seeds. No times: it needs no idle machine.

    python bench/topics_fitted.py TRAIN --heldout H1 H2 --mallet PROGRAM      texts as bench/topics_texts.py makes them
    python bench/topics_fitted.py TRAIN --heldout H1 H2 --quick              a smoke test

MALLET draws with one thread: so it is exact, as ours. Both fit alpha of each topic and one beta every 10 sweeps, from --burn-in on (ours: 100), and one judge scores
what the last sweep left. Ours is also scored by the mean over the states of the second half of all sweeps, as `shoal topics train` says it. Chains of two seeds end in
different places: what both differ by is said with its standard error, and few seeds say little.
"""

from __future__ import annotations

import itertools
import math
import pathlib
import statistics
import tempfile

import side_by_side as sbs
import topic_peers


def shoal(task: topic_peers.Task, sweeps: int, seed: int, fitted: bool) -> dict[str, float]:
    options = {"topics": task.topics, "sweeps": sweeps, "seed": seed, "threads": 1, "keep-every": 0, "format": "yahoo"}
    with tempfile.TemporaryDirectory(dir=task.folder) as folder:
        said = topic_peers.run([sbs.shoal(), "topics", "train", task.train, "--json", "--heldout", *task.heldout, "--output", f"{folder}/model",
                                *topic_peers.flags("--", options), *task.prior(), *([] if fitted else ["--fixed-prior"])])
    last = topic_peers.lines_of(said)[-1]
    return {"perplexity": last["perplexity"], "by the mean of states": last["mean_perplexity"], "log-likelihood": last["log_likelihood"]}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("train")
    parser.add_argument("--heldout", nargs=2, required=True)
    parser.add_argument("--mallet", metavar="PROGRAM")
    parser.add_argument("-k", "--topics", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--burn-in", type=int, default=100, help="of MALLET, whose own default is 200")
    args = parser.parse_args()
    if args.quick:
        args.topics, args.sweeps, args.seeds, args.burn_in = 10, 20, 2, 5
    with tempfile.TemporaryDirectory() as folder:
        task = topic_peers.Task(args.train, args.heldout, args.topics, alpha_sum=0.1 * args.topics, beta=0.01, threads=1, folder=pathlib.Path(folder))

        def each_seed(once):
            seeds = itertools.count(1)

            def turn() -> dict[str, float]:
                figures = once(next(seeds))
                return {figure: value for figure, value in figures.items() if figure != "seconds"}

            return turn

        variants = {f"Shoal, {word}": each_seed(lambda seed, fitted=fitted: shoal(task, args.sweeps, seed, fitted)) for word, fitted in (("fitted", True), ("kept", False))}
        if args.mallet:
            fit = ("--optimize-interval", "10", "--optimize-burn-in", str(args.burn_in))
            for word, peer in (("fitted", topic_peers.Mallet(task, args.mallet, 1, fit)), ("kept", topic_peers.Mallet(task, args.mallet, 1))):
                variants[f"MALLET, {word}"] = each_seed(lambda seed, peer=peer: peer(args.sweeps, seed))
        results = sbs.interleave(variants, args.seeds)
    sbs.print_header(f"{pathlib.Path(args.train).name}, {args.topics} topics, alpha {0.1 * args.topics:g} in all, beta 0.01, {args.sweeps} sweeps, {args.seeds} seeds")
    for name, figures in results.items():
        print(f"{name:<15}" + "  ".join(f"{figure} {sbs.median(values):.5g} ({' '.join(f'{value:.5g}' for value in values)})" for figure, values in figures.items()))
    if args.mallet:
        ours, theirs = (results[f"{who}, fitted"]["perplexity"] for who in ("Shoal", "MALLET"))
        error = math.sqrt(statistics.variance(ours) / len(ours) + statistics.variance(theirs) / len(theirs)) if args.seeds > 1 else math.nan
        print(f"fitted, ours less MALLET's perplexity, of the means: {statistics.mean(ours) - statistics.mean(theirs):.1f}, standard error {error:.1f}; "
              f"medians' ratio {sbs.median(ours) / sbs.median(theirs):.4f}")


if __name__ == "__main__":
    main()
