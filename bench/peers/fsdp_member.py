"""One member of sharded training (FSDP2, `fully_shard` by block) of a transformer of 4 blocks of width 192 on random text;
started by bench/fsdp.py. One process trains the same model on Shoal's backend and on gloo, in turns, so that both see the
same machine and links within seconds. Their losses must agree before anything is timed.

Rank 0 prints one JSON line: by backend the median seconds of a step in each round, and all members' CPU seconds a step.
"""

import argparse
import collections
import json
import os
import resource
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import shoal

LETTERS, WIDTH, BLOCKS, LENGTH = 256, 192, 4, 64
WARMUP = 3


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 6, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True) for _ in range(BLOCKS))
        self.out = nn.Linear(WIDTH, LETTERS)

    def forward(self, text):
        x = self.letters(text) + self.places.weight
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class Trainer:
    def __init__(self, group, text):
        torch.manual_seed(1)
        self.group, self.text = group, text
        self.model = Transformer()
        mesh = DeviceMesh.from_group(group, "cpu")
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.text[:, :-1]).flatten(0, 1), self.text[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def turn(self, steps: int) -> list[float]:
        dist.barrier(self.group)
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - begin)
        return times


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="a turn")
    parser.add_argument("--store", default="127.0.0.1:29600", help="host:port of the groups' store, on member 0")
    args = parser.parse_args()
    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))
    rank, size = int(os.environ["SHOAL_RANK"]), int(os.environ["SHOAL_SIZE"])
    dist.init_process_group("shoal", init_method=f"tcp://{args.store}", rank=rank, world_size=size)
    text = torch.randint(0, LETTERS, (args.batch, LENGTH + 1), generator=torch.Generator().manual_seed(100 + rank))
    trainers = {"shoal": Trainer(dist.group.WORLD, text), "gloo": Trainer(dist.new_group(backend="gloo"), text)}
    losses = {way: [one.step() for _ in range(WARMUP)] for way, one in trainers.items()}
    off = max(abs(ours - theirs) for ours, theirs in zip(losses["shoal"], losses["gloo"]))
    assert off <= 1e-6, f"the losses differ by {off}"

    times, cpu = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(args.rounds):
        for way, one in trainers.items():
            began = cpu_seconds()
            times[way].append(statistics.median(one.turn(args.steps)))
            cpu[way].append((cpu_seconds() - began) / args.steps)
    for way, spent in cpu.items():
        total = torch.tensor(spent, dtype=torch.float64)
        dist.all_reduce(total)
        cpu[way] = total.tolist()
    if rank == 0:
        parameters = sum(parameter.numel() for parameter in trainers["shoal"].model.parameters())
        print(json.dumps({"parameters": parameters, "loss": losses["shoal"][-1], "times": times, "cpu": cpu}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
