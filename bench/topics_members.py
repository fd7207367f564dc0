"""Topic models by how many draw: threads and members of one machine, hosts with slow links, memory of a member, and a million topics of all bigrams.

    python bench/topics_members.py threads TRAIN      two threads beside one, four members beside two threads: seconds, and log-likelihood after 20 sweeps
    python bench/topics_members.py memory TRAIN       rows of words that a member holds, of one, two and four
    python bench/topics_members.py links TRAIN        four hosts with links of 100 Mbit/s beside four with unlimited ones; needs root
    python bench/topics_members.py bigrams TEXT       --bigrams all, K = 1,000,000, four members: memory of all, tokens a second of a core, log-likelihood by sweep
    python bench/topics_members.py ... --quick        a smoke test

TRAIN as bench/topics_texts.py makes it; TEXT in the same form, with its words in the order of the text. Seconds are of sweeps alone. Members have a thread each.
"""

from __future__ import annotations

import math
import os
import pathlib
import sys
import tempfile
import threading

import side_by_side as sbs
import topic_peers

UNLIMITED = "10gbit"  # of links between namespaces: beyond what two cores carry


def train(args, lab: sbs.Lab, threads: int, more: list[str], started=lambda process: None) -> list[dict]:
    """Looks of one run, by as many members as the lab has; started: as of run_members."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"format": "yahoo", "topics": args.topics, "sweeps": args.sweeps, "threads": threads, "alpha-sum": args.alpha_sum, "beta": 0.01,
                   "test-share": 0, "keep-every": 0, "look-every": args.look_every, "output": f"{folder}/model"}
        command = [sbs.shoal(), "topics", "train", os.path.abspath(args.train), "--fixed-prior", "--json", *topic_peers.flags("--", options), *more]
        return sbs.run_members(lab, command, timeout=3600, folder=folder, started=started)


def figures(looks: list[dict]) -> dict[str, float]:
    at20 = next((look["log_likelihood"] for look in looks if look["sweep"] >= 20), math.nan)
    return {"seconds": looks[-1]["seconds"], "log-likelihood after 20": at20, "log-likelihood": looks[-1]["log_likelihood"]}


def say(results: dict[str, dict[str, list[float]]]) -> None:
    for name, of in results.items():
        print(f"{name}:" + "".join(f"  {figure} {sbs.median(values):.5g} ({sbs.spread(values)})" for figure, values in of.items()))


def threads(args) -> None:
    def by(members: int, each: int) -> dict[str, float]:
        return figures(train(args, sbs.Lab(members, None), each, []))

    results = sbs.interleave({"one thread": lambda: by(1, 1), "two threads": lambda: by(1, 2), "four members": lambda: by(4, 1)}, args.rounds)
    say(results)
    one, two, four = (of["seconds"] for of in results.values())
    print(f"one thread's time over two's: {sbs.paired_ratio(one, two):.3f}; four members' over two threads': {sbs.paired_ratio(four, two):.3f}")
    reached = [sbs.median(of["log-likelihood after 20"]) for of in results.values()]
    print(f"log-likelihood after 20 sweeps: apart by {max(reached) - min(reached):.4f}")


def memory(args) -> None:
    alone = None
    for members in (1, 2, 4):
        last = train(args, sbs.Lab(members, None), 1, [])[-1]
        alone = alone or last["rows_bytes"]
        print(f"P = {members}: {last['rows_bytes'] / 1e6:.3f} MB of rows of words on rank 0, times P {last['rows_bytes'] * members / alone:.3f} of what one member has; "
              f"with documents and totals {last['model_bytes'] / 1e6:.1f} MB, the process {last['memory_bytes'] / 1e6:.0f} MB")


def links(args) -> None:
    def at(rate: str) -> dict[str, float]:
        with sbs.Lab(args.members, rate) as lab:
            looks = train(args, lab, 1, [])
        return {**figures(looks), "MB sent a sweep": sum(look["sent_bytes"] for look in looks) / len(looks) / 1e6}

    results = sbs.interleave({rate: lambda rate=rate: at(rate) for rate in (args.rate, UNLIMITED)}, args.rounds)
    say(results)
    slow, quick = (of["seconds"] for of in results.values())
    print(f"time at {args.rate} over that of unlimited links: {sbs.paired_ratio(slow, quick):.3f}")


class Memory:
    """Watches what all processes below one have together: pages that some share count once."""

    def __init__(self, root: int):
        self.root, self.most, self.ended = root, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self) -> None:
        while not self.ended.wait(timeout=1):
            self.most = max(self.most, sum(map(self.share, self.below(self.root))))

    def end(self) -> None:
        self.ended.set()
        self.thread.join()

    def below(self, process: int) -> list[int]:
        try:
            children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
        except OSError:  # it has ended
            return []
        return [process, *(of for child in children for of in self.below(int(child)))]

    @staticmethod
    def share(process: int) -> int:
        """Bytes, each page divided by the processes that have it."""
        try:
            lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            return 0
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def bigrams(args) -> None:
    watched = []
    looks = train(args, sbs.Lab(args.members, None), 1, ["--bigrams", "all", "--memory", args.memory], lambda process: watched.append(Memory(process)))
    watched[0].end()
    cores = min(args.members, os.cpu_count() or 1)
    for look in looks:
        print(f"sweep {look['sweep']}: log-likelihood {look['log_likelihood']:.4f}, {look['tokens_per_s'] / cores / 1e6:.2f} M tokens/s of a core")
    reached = [look["log_likelihood"] for look in looks]
    print(f"it rose in {sum(after > before for before, after in zip(reached, reached[1:]))} of {len(reached) - 1} steps; "
          f"{sbs.median([look['tokens_per_s'] / cores / 1e6 for look in looks]):.2f} M tokens/s of a core by the median; at most {watched[0].most / 1e9:.2f} GB in all")


# What each takes, unless it is told otherwise: topics, alpha of all, sweeps, sweeps from look to look, rounds.
WAYS = {"threads": (threads, 1000, 50, 40, 20, 3), "memory": (memory, 1000, 50, 20, 20, 1), "links": (links, 1000, 50, 100, 20, 2),
        "bigrams": (bigrams, 1_000_000, 50, 20, 1, 1)}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.set_defaults(rate="100mbit")
    parser.add_argument("what", choices=WAYS)
    parser.add_argument("train")
    parser.add_argument("-k", "--topics", type=int)
    parser.add_argument("--sweeps", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--memory", default="950M", help="of bigrams: of each member")
    args = parser.parse_args()
    measure, topics, args.alpha_sum, sweeps, args.look_every, rounds = WAYS[args.what]
    if args.quick:
        topics, sweeps, args.look_every, rounds = 20, 4, 1, 1
    args.topics, args.sweeps, args.rounds = args.topics or topics, args.sweeps or sweeps, args.rounds or rounds
    sbs.print_header(f"{args.what}: {pathlib.Path(args.train).name}, {args.topics} topics, {args.sweeps} sweeps, {args.rounds} rounds")
    measure(args)


if __name__ == "__main__":
    sys.exit(main())
