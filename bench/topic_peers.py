"""Other programs for topics, each trained on one text in the form that it wants, and judged by `shoal topics evaluate` of the topics of tokens that it leaves.

bench/peers/topics has how they are built outside this tree; tomotopy comes by `pip install tomotopy` into a Python of its own. All begin with random topics, and
their times are of sweeps alone, as each says them.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess

import side_by_side as sbs

TOMOTOPY = """
import json, sys, time, tomotopy
text, topics, alpha_sum, beta, workers, sweeps, seed, model = sys.argv[1:]
lda = tomotopy.LDAModel(k=int(topics), alpha=float(alpha_sum) / int(topics), eta=float(beta), seed=int(seed))
lda.optim_interval = 0
for line in open(text):
    lda.add_doc(line.split()[2:])
lda.train(0)
begin = time.perf_counter()
for _ in range(int(sweeps)):
    lda.train(1, workers=int(workers))
print(json.dumps({"seconds": time.perf_counter() - begin}))
lda.save(model)
"""


@dataclasses.dataclass
class Task:
    """What all of a race do alike. folder: for what they leave, and for their forms of the text."""

    train: str  # WarpLDA's text
    heldout: list[str] | None  # halves of other documents in the same form
    topics: int
    alpha_sum: float
    beta: float
    threads: int
    folder: pathlib.Path

    def judged(self, state: pathlib.Path, form: str, more: list[str]) -> dict[str, float]:
        """Log-likelihood a token and held-out perplexity of another program's topics of tokens."""
        command = [sbs.shoal(), "topics", "evaluate", str(state), "--state", form, "--json", *more]
        heldout = ["--format", "yahoo", "--heldout", *self.heldout] if self.heldout else []
        figures = {line["figure"]: line for line in lines_of(run([*command, *heldout]))}
        both = {"log-likelihood": figures["likelihood"]["per_token"]}
        return {**both, "perplexity": figures["completion"]["perplexity"]} if self.heldout else both

    def prior(self) -> list[str]:
        return ["--alpha-sum", str(self.alpha_sum), "--beta", str(self.beta)]


def run(command: list[str], more: dict[str, str] | None = None, folder: pathlib.Path | None = None) -> str:
    """What a command says on both streams: some programs tell times on one, some on the other."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(more or {})}, cwd=folder)
    if ran.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)} ended with {ran.returncode}:\n{ran.stdout[-2000:]}")
    return ran.stdout


def lines_of(said: str) -> list[dict]:
    """Those for machines, of what `shoal` said."""
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def flags(dashes: str, options: dict[str, object]) -> list[str]:
    return [word for name, value in options.items() for word in (dashes + name, str(value))]


class WarpLda:
    def __init__(self, task: Task, programs: str, proposals: int, settled: int):
        self.task, self.program, self.settled = task, f"{programs}/warplda{proposals}", settled
        self.name, self.prefix = f"WarpLDA, {proposals} proposal{'s' * (proposals > 1)}", task.folder / "warplda"
        text = task.folder / "warplda.txt"  # format writes beside it
        text.symlink_to(os.path.abspath(task.train))
        run([f"{programs}/format", "-input", str(text), "-prefix", str(self.prefix)])

    def __call__(self, sweeps: int) -> dict[str, float]:
        task = self.task
        options = {"prefix": self.prefix, "k": task.topics, "alpha": task.alpha_sum, "beta": task.beta, "niter": sweeps}
        said = run([self.program, "--nowriteinfo", *flags("--", options)], {"OMP_NUM_THREADS": str(task.threads)})
        done = re.findall(r"Iteration \d+, ([\d.]+) s, ([\d.]+) Mtokens/s", said)
        figures = {"seconds": sum(float(seconds) for seconds, _ in done), "M tokens/s, settled": sbs.median([float(rate) for _, rate in done[-self.settled:]])}
        return {**figures, **task.judged(task.folder / "warplda.z.estimate", "warplda", task.prior())}


class Mallet:
    """more: flags of train-topics, such as those that fit its priors."""

    def __init__(self, task: Task, program: str, threads: int, more: tuple[str, ...] = ("--optimize-interval", "0")):
        self.task, self.program, self.threads, self.more = task, program, threads, more
        self.name, self.text = f"MALLET, {threads} thread{'s' * (threads > 1)}", task.folder / f"mallet{threads}"
        form = ["--line-regex", r"^(\S+) (\S+) (.*)$", "--token-regex", r"\S+", "--keep-sequence", "--preserve-case"]
        run([program, "import-file", "--input", os.path.abspath(task.train), "--output", str(self.text), *form])

    def __call__(self, sweeps: int, seed: int = 0) -> dict[str, float]:  # seed 0: the clock's
        task, state = self.task, self.text.with_suffix(".state.gz")
        options = {"input": self.text, "num-topics": task.topics, "alpha": task.alpha_sum, "beta": task.beta, "num-threads": self.threads,
                   "num-iterations": sweeps, "random-seed": seed, "show-topics-interval": 0, "output-state": state}
        said = run([self.program, "train-topics", *flags("--", options), *self.more])
        told = re.search(r"Total time: (?:(\d+) minutes )?(\d+) seconds", said)
        if not told:  # it ends with 0 whatever happened
            raise SystemExit(f"bench: MALLET said no time:\n{said[-500:]}")
        return {"seconds": 60 * int(told[1] or 0) + int(told[2]), **task.judged(state, "mallet", [])}


class Tomotopy:
    name = "tomotopy"

    def __init__(self, task: Task, python: str):
        self.task, self.python = task, python

    def __call__(self, sweeps: int, seed: int = 1) -> dict[str, float]:
        task, model = self.task, self.task.folder / "tomotopy.bin"
        arguments = [task.train, task.topics, task.alpha_sum, task.beta, task.threads, sweeps, seed, model]
        said = run([self.python, "-c", TOMOTOPY, *map(str, arguments)])
        return {**json.loads(said.splitlines()[-1]), **task.judged(model, "tomotopy", [])}


class LightLda:
    """Of LightLDA a document has 8,192 tokens at most: the rest of it is lost."""

    name = "LightLDA"

    def __init__(self, task: Task, programs: str):
        self.task, self.programs, self.words, self.documents = task, os.path.abspath(programs), task.folder / "lightlda.words", 0
        counts: collections.Counter[str] = collections.Counter()
        with open(task.train, encoding="utf-8") as text:
            for line in text:
                counts.update(line.split()[2:])
        numbers = {word: number for number, (word, _) in enumerate(counts.most_common())}
        self.words.write_text("".join(f"{number}\t{word}\t{counts[word]}\n" for word, number in numbers.items()))
        self.bags = task.folder / "lightlda.bags"
        with open(task.train, encoding="utf-8") as text, open(self.bags, "w", encoding="utf-8") as bags:
            for self.documents, line in enumerate(text, 1):
                bag = collections.Counter(numbers[word] for word in line.split()[2:])
                print(f"{self.documents}\t" + " ".join(f"{word}:{count}" for word, count in sorted(bag.items())), file=bags)
        self.vocabulary = len(numbers)

    def __call__(self, sweeps: int) -> dict[str, float]:
        task, folder = self.task, self.task.folder
        run([f"{self.programs}/dump_binary", str(self.bags), str(self.words), str(folder), "0"])
        options = {"num_vocabs": self.vocabulary, "num_topics": task.topics, "num_iterations": sweeps, "alpha": task.alpha_sum / task.topics,
                   "beta": task.beta, "mh_steps": 2, "num_local_workers": task.threads, "max_num_document": self.documents + 1, "input_dir": folder}
        said = run([f"{self.programs}/lightlda", *flags("-", options)],
                   {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, folder)
        seconds = sum(map(float, re.findall(r"(?:Alias|Training) Time used: ([\d.]+) s", said)))
        more = ["--topics", str(task.topics), "--words-file", str(self.words), *task.prior()]
        return {"seconds": seconds, **task.judged(folder / "block.0", "lightlda", more)}
