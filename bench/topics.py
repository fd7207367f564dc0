"""Topic models beside WarpLDA: after how long a model foretells held-out words as well as WarpLDA's does, and has the log-likelihood of its topics;
how many tokens a second each draws when topics have settled.

    python bench/topics.py TRAIN --heldout H1 H2 --warplda FOLDER -k 1000     TRAIN, H1, H2: WarpLDA's text, "id id word word ...", a document a line
    python bench/topics.py TRAIN --warplda FOLDER --threads 1 --sweeps 100   tokens a second alone, of a core
    python bench/topics.py TRAIN --quick                                     a smoke test, without peer

FOLDER has WarpLDA's programs `format` and `warplda`, built outside this tree (for M proposals with WarpLDA<M> in place of WarpLDA<1>). Both begin
with random topics and keep their priors. Times are those of sweeps alone, as each says them; `shoal topics` judges what both have reached. Settled
means the last sweeps (--settled): in the first ones most tokens move, and rows are long.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import side_by_side as sbs


def judged(args, state: pathlib.Path) -> dict[str, float]:
    """Log-likelihood a token and held-out perplexity of WarpLDA's topics of tokens."""
    command = [sbs.shoal(), "topics", "evaluate", str(state), "--state", "warplda", "--alpha-sum", str(args.alpha_sum), "--beta", str(args.beta)]
    out = subprocess.run([*command, "--format", "yahoo", "--heldout", *args.heldout, "--json"], check=True, capture_output=True, text=True).stdout
    figures = {line["figure"]: line for line in map(json.loads, out.splitlines())}
    return {"log-likelihood": figures["likelihood"]["per_token"], "perplexity": figures["completion"]["perplexity"]}


def warplda(args, folder: str, program: str, sweeps: int) -> dict[str, float]:
    here = pathlib.Path(folder)
    if not (here / "w.vocab").exists():
        text = here / "text"
        text.symlink_to(os.path.abspath(args.train))
        subprocess.run([f"{args.warplda}/format", "-input", str(text), "-prefix", str(here / "w")], check=True, capture_output=True)
    options = {"prefix": here / "w", "k": args.topics, "alpha": args.alpha_sum, "beta": args.beta, "niter": sweeps}
    ran = subprocess.run([f"{args.warplda}/{program}", "--nowriteinfo", *(f"--{name}={value}" for name, value in options.items())], check=True,
                         capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
    sweeps_done = re.findall(r"Iteration \d+, ([\d.]+) s, ([\d.]+) Mtokens/s", ran.stdout)
    figures = {"seconds": sum(float(seconds) for seconds, _ in sweeps_done),
               "M tokens/s, settled": sbs.median([float(rate) for _, rate in sweeps_done[-args.settled:]])}
    return {**figures, **(judged(args, here / "w.z.estimate") if args.heldout else {})}


def shoal(args, folder: str, sweeps: int, target: dict[str, float] | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder) as model:
        options = {"format": "yahoo", "topics": args.topics, "sweeps": sweeps, "alpha-sum": args.alpha_sum, "beta": args.beta,
                   "threads": args.threads, "look-every": 2, "keep-every": 0, "output": f"{model}/model"}
        command = [sbs.shoal(), "topics", "train", args.train, "--fixed-prior", "--json", *(f"--{name}={value}" for name, value in options.items())]
        out = subprocess.run([*command, *(["--heldout", *args.heldout] if args.heldout else [])], check=True, capture_output=True, text=True).stdout
    looks = [json.loads(line) for line in out.splitlines()]
    settled = [look["tokens_per_s"] / 1e6 for look in looks if look["sweep"] > sweeps - args.settled]
    figures = {"M tokens/s, settled": sbs.median(settled), "log-likelihood": looks[-1]["log_likelihood"]}
    if target and args.heldout:
        reached = {"perplexity": lambda look: look["perplexity"] <= target["perplexity"],
                   "log-likelihood": lambda look: look["log_likelihood"] >= target["log-likelihood"]}
        for name, there in reached.items():
            figures[f"seconds to its {name}"] = next((look["seconds"] for look in looks if there(look)), float("nan"))
    return figures


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("train")
    parser.add_argument("--heldout", nargs=2)
    parser.add_argument("--warplda", help="folder of its programs")
    parser.add_argument("--program", default="warplda", help="name of its program in there")
    parser.add_argument("-k", "--topics", type=int, default=1000)
    parser.add_argument("--alpha-sum", type=float, default=50)
    parser.add_argument("--beta", type=float, default=0.01)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=80, help="ours")
    parser.add_argument("--peer-sweeps", type=int, default=100)
    parser.add_argument("--settled", type=int, default=20, help="sweeps, the last ones of each")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if args.quick:
        args.topics, args.sweeps, args.rounds, args.warplda = 20, 4, 1, None
    theirs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        def peer() -> dict[str, float]:
            theirs.append(warplda(args, folder, args.program, args.peer_sweeps))
            return theirs[-1]

        variants = {"WarpLDA": peer} if args.warplda else {}
        variants["Shoal"] = lambda: shoal(args, folder, args.sweeps, theirs[-1] if theirs else None)
        figures = sbs.interleave(variants, args.rounds)
    sbs.print_header(f"{pathlib.Path(args.train).name}, {args.topics} topics, {args.threads} threads, {args.peer_sweeps} sweeps of {args.program}, "
                     f"{args.rounds} rounds")
    for name, figure in figures.items():
        print(f"{name:<9}" + "".join(f"  {key} {sbs.median(values):.5g} ({sbs.spread(values)})" for key, values in figure.items()))
    if args.warplda:
        rate = "M tokens/s, settled"
        print(f"our tokens/s over WarpLDA's, settled: {sbs.paired_ratio(figures['Shoal'][rate], figures['WarpLDA'][rate]):.2f}")
    if args.warplda and args.heldout:
        for name in ("perplexity", "log-likelihood"):
            ratio = sbs.paired_ratio(figures["WarpLDA"]["seconds"], figures["Shoal"][f"seconds to its {name}"])
            print(f"WarpLDA's time over ours to its {name}: {ratio:.2f}")


if __name__ == "__main__":
    main()
