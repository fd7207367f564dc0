"""One member of bench/ways.py: the same model by each way, each with a plan of its own, in turns. Rank 0 prints one JSON line: by way the
median seconds of a step in each round, the bytes that it sent a step, and which ways the plan gave to how many tensors."""

import argparse
import collections
import json
import time

import torch
import torch.nn.functional as F
from torch import nn

import models
import shoal
from traffic import bytes_sent

WARMUP = 6  # steps of each way before the first turn: the plan is chosen after three


class Table(nn.Module):
    """An embedding of 50,000 words and a small head: 3,223,370 parameters, of which a step touches few."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50_000, 64)
        self.head = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 26))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.words(words).mean(1))


def batch(model: str, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    if model == "table":
        return torch.randint(0, 50_000, (size, 20)), torch.randint(0, 26, (size,))
    return torch.randn(size, 1, 28, 28), torch.randint(0, 10, (size,))


class Trainer:
    def __init__(self, model: str, way: str, size: int):
        torch.manual_seed(1)
        net = Table() if model == "table" else models.MODELS[model]()
        self.net, self.optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.01), way)
        self.inputs, self.labels = batch(model, size)
        self.turn(WARMUP)

    def turn(self, steps: int) -> float:
        begin = time.perf_counter()
        for _ in range(steps):
            self.optimizer.zero_grad()
            F.cross_entropy(self.net(self.inputs), self.labels).backward()
            self.optimizer.step()
        self.net.flush()
        return (time.perf_counter() - begin) / steps

    def plan(self) -> str:
        ways = collections.Counter()
        for unit in json.loads(self.net.plan)["units"]:
            ways[unit["way"]] += len(unit["tensors"])
        return ", ".join(f"{count} {way}" for way, count in ways.most_common())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="fcnet")
    parser.add_argument("--ways", nargs="+", default=["auto"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shoal.init()
    trainers = {way: Trainer(args.model, way, args.batch) for way in args.ways}
    seconds, sent = collections.defaultdict(list), collections.Counter()
    for _ in range(args.rounds):
        for way, trainer in trainers.items():
            before = bytes_sent()
            seconds[way].append(trainer.turn(args.steps))
            sent[way] += bytes_sent() - before
    if shoal.rank() == 0:
        steps = args.rounds * args.steps
        print(json.dumps({way: {"seconds": seconds[way], "bytes": sent[way] / steps, "plan": trainers[way].plan()} for way in trainers}))


if __name__ == "__main__":
    main()
