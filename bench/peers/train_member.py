"""One member of training runs on random images of Fashion-MNIST's shape; started by bench/training.py. One process trains each
model in several ways, in turns, so that all ways see the same machine and links within seconds:

    shoal            shoal.data_parallel
    ddp              PyTorch's DistributedDataParallel on gloo with its default bucket
    ddp best         the same with the bucket that was fastest in a turn of each size
    ddp on shoal     DistributedDataParallel with that bucket on Shoal's backend
    plain            no parallelism (one process alone)

Rank 0 prints one JSON line a model: by way the median seconds of a step in each round, and all members' CPU seconds a step.
"""

import argparse
import collections
import json
import os
import resource
import statistics
import time

import torch
import torch._dynamo
import torch.distributed as dist
import torch.nn.functional as F

import models
import shoal

BUCKETS = [0.05, 0.25, 1, 4, 25]  # MB; the last is DDP's default
WARMUP = 8                        # steps of each way before the first turn


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Net(torch.nn.Module):
    """A user's own module. Around DistributedDataParallel a bare nn.Sequential is not compiled at all: its forward is PyTorch's code."""

    def __init__(self, layers: torch.nn.Module):
        super().__init__()
        self.layers = layers

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


class Trainer:
    """A model trained in one way; turn() trains a number of steps."""

    def __init__(self, model: torch.nn.Module, wrap, images: torch.Tensor, labels: torch.Tensor, args: argparse.Namespace):
        model = Net(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.model, self.optimizer = wrap(model, optimizer)
        if args.compile:
            self.model = torch.compile(self.model)  # around: as PyTorch advises for DDP, whose buckets then divide the graph
        self.autocast = args.autocast
        self.images, self.labels = images, labels
        self.turn(WARMUP)

    def turn(self, steps: int) -> list[float]:
        if dist.is_initialized():
            dist.barrier()
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                loss = F.cross_entropy(self.model(self.images), self.labels)
            loss.backward()
            self.optimizer.step()
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        getattr(self.model, "flush", lambda: None)()  # what of the last step is still on its way belongs to it
        times[-1] += time.perf_counter() - begin
        return times


def compiled(make, args: argparse.Namespace):
    """make(), which must have compiled something if that was asked for. (A second trainer of one kind finds the graphs of the first.)"""
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    made = make()
    if args.compile and torch._dynamo.utils.counters["stats"]["unique_graphs"] == before:
        raise RuntimeError("torch.compile left the model as it was")
    return made


def same_everywhere(value: float) -> float:
    """Rank 0's value."""
    box = torch.tensor([value], dtype=torch.float64)
    if dist.is_initialized():
        dist.broadcast(box, 0)
    return box.item()


def compare(name: str, args: argparse.Namespace, on_shoal) -> dict:
    generator = torch.Generator().manual_seed(100 + shoal.rank())
    images = torch.randn(args.batch, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (args.batch,), generator=generator)

    def trainer(wrap) -> Trainer:
        torch.manual_seed(1)
        return Trainer(models.MODELS[name](), wrap, images, labels, args)

    def ddp(bucket: float, group=None):
        return lambda model, optimizer: (
            torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=bucket), optimizer)

    trainers = {"shoal": compiled(lambda: trainer(shoal.data_parallel), args)}
    steps = args.steps or int(same_everywhere(max(5, min(100, args.turn / statistics.median(trainers["shoal"].turn(5))))))
    best = 0.0
    if shoal.size() > 1:
        buckets = [bucket for bucket in BUCKETS if bucket >= 1 or not args.compile]  # it divides the graph by no smaller ones
        by_bucket = compiled(lambda: {bucket: trainer(ddp(bucket)) for bucket in buckets}, args)
        fastest = min(by_bucket, key=lambda bucket: statistics.median(by_bucket[bucket].turn(steps)))
        best = same_everywhere(fastest)
        trainers |= {"ddp": by_bucket[BUCKETS[-1]], "ddp best": by_bucket[best], "ddp on shoal": trainer(ddp(best, on_shoal))}
    else:
        trainers["plain"] = trainer(lambda model, optimizer: (model, optimizer))
    times, cpu = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(args.rounds):
        for way, one in trainers.items():
            began = cpu_seconds()
            times[way].append(statistics.median(one.turn(steps)))
            cpu[way].append((cpu_seconds() - began) / steps)
    if dist.is_initialized():
        for way, spent in cpu.items():
            total = torch.tensor(spent, dtype=torch.float64)
            dist.all_reduce(total)
            cpu[way] = total.tolist()
    return {"model": name, "bucket": best, "steps": steps, "times": times, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="a turn; 0: as many as fit --turn")
    parser.add_argument("--turn", type=float, default=1, help="seconds")
    parser.add_argument("--autocast", action="store_true", help="forward in bfloat16")
    parser.add_argument("--compile", action="store_true", help="torch.compile around every way")
    parser.add_argument("--store", default="127.0.0.1:29600", help="host:port of DDP's store, on member 0")
    args = parser.parse_args()
    torch._dynamo.config.recompile_limit = 64  # each of our ways compiles the same code for a model of its own
    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))
    shoal.init()
    on_shoal = None
    if shoal.size() > 1:
        dist.init_process_group("gloo", init_method=f"tcp://{args.store}", rank=shoal.rank(), world_size=shoal.size())
        on_shoal = dist.new_group(backend="shoal")
    for name in args.models:
        line = compare(name, args, on_shoal)
        if shoal.rank() == 0:
            print(json.dumps(line), flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
