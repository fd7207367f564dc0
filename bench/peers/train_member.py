"""One member of training runs, of small models (models.py) or the zoo's; started by bench/training.py. One process trains each
model in several ways, in turns, so that all ways see the same machine and links within seconds:

    shoal            shoal.data_parallel, which plans by itself
    shoal PLAN       the same with that plan
    ddp              PyTorch's DistributedDataParallel on gloo with its default bucket
    ddp best         the same with the bucket that was fastest in a turn of each size
    ddp on shoal     DistributedDataParallel with that bucket on Shoal's backend
    plain            no parallelism (one process alone)

Rank 0 prints one JSON line a model: by way the seconds a step in each round, all members' CPU seconds a step, and what each of
our plans predicted.
"""

import argparse
import collections
import functools
import json
import math
import os
import resource
import time

import torch
import torch._dynamo
import torch.distributed as dist
import torch.nn.functional as F

import models
import replayed
import shoal
from shoal.train.tasks import SYNTHETIC, Task

BATCHES = 8


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Net(torch.nn.Module):
    """A user's own module. Around DistributedDataParallel a bare nn.Sequential is not compiled at all: its forward is PyTorch's code."""

    def __init__(self, layers: torch.nn.Module):
        super().__init__()
        self.layers = layers

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.layers(*inputs)


class Load:
    """What is trained: new models, batches of this member (inputs and targets) that steps take in turns, and the loss."""

    def __init__(self, name: str, args: argparse.Namespace):
        self.loss, self.device = F.cross_entropy, args.device
        if name in models.MODELS:  # on random images of Fashion-MNIST's shape
            self.model = models.MODELS[name]
            generator = torch.Generator().manual_seed(100 + shoal.rank())
            images = torch.randn(args.batch, 1, 28, 28, generator=generator)
            self.batches = [(images.to(args.device), torch.randint(0, 10, (args.batch,), generator=generator).to(args.device))]
            return
        task = Task(name)
        self.model, self.loss = lambda: shoal.models.build(name), task.loss
        training, _ = task.read(args.data, args.batch, 100 + shoal.rank())
        chosen = torch.randperm(len(training), generator=torch.Generator().manual_seed(100 + shoal.rank()))
        batches = [training.batch(some) for some in chosen.split(args.batch)[: BATCHES if args.data != SYNTHETIC else 1]]
        self.batches = [[(each[:, : args.places] if task.is_text else each).to(args.device) for each in batch] for batch in batches]
        if args.replay:
            *inputs, targets = self.batches[0]
            recorded = [None]
            if shoal.rank() == 0:
                model = self.model()
                recorded = [replayed.record(model, lambda: task.loss(model(*inputs), targets))]
            if dist.is_initialized():
                dist.broadcast_object_list(recorded)
            self.model = lambda: replayed.replayed(shoal.models.build(name), recorded[0], args.asleep)
            self.loss = lambda number, _: number
            self.batches = [(torch.zeros((), requires_grad=True), None)]

    def finish(self) -> None:
        """Waits until the device has done what it was given, so that a step's time is all of it."""
        if self.device != "cpu":
            torch.accelerator.synchronize()


class Trainer:
    """A model trained in one way; turn() trains a number of steps."""

    def __init__(self, wrap, load: Load, args: argparse.Namespace):
        torch.manual_seed(1)
        model = Net(load.model()).to(args.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.model, self.optimizer = wrap(model, optimizer)
        if args.compile:
            self.model = torch.compile(self.model)  # around: as PyTorch advises for DDP, whose buckets then divide the graph
        self.autocast = args.autocast
        self.load = load
        self.turn(args.warmup)

    def turn(self, steps: int) -> float:
        """Seconds a step. All turns of all ways have the same batches, whose sentences differ in length; and what one step leaves to be waited for is the next one's."""
        if dist.is_initialized():
            dist.barrier()
        begin = time.perf_counter()
        for step in range(steps):
            self.optimizer.zero_grad()
            self._both_passes(step)
            self.optimizer.step()
            self.load.finish()
        getattr(self.model, "flush", lambda: None)()  # what of the last step is still on its way belongs to it
        self.load.finish()
        return (time.perf_counter() - begin) / max(1, steps)

    def computing(self) -> float:
        """Seconds a step, F + B: both passes over a turn's batches without communication, by the slowest member of each, while all compute."""
        seconds = []
        for step in range(max(5, len(self.load.batches))):
            dist.barrier()
            begin = time.perf_counter()
            with self.model.no_sync():
                self._both_passes(step)
            self.load.finish()
            seconds.append(time.perf_counter() - begin)
        self.optimizer.zero_grad()
        slowest = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return slowest.mean().item()

    def _both_passes(self, step: int) -> None:
        *inputs, targets = self.load.batches[step % len(self.load.batches)]
        with torch.autocast(self.load.device, torch.bfloat16, enabled=self.autocast):
            loss = self.load.loss(self.model(*inputs), targets)
        loss.backward()


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
    load = Load(name, args)

    def trainer(wrap) -> Trainer:
        return Trainer(wrap, load, args)

    def ddp(bucket: float, group=None):
        return lambda model, optimizer: (
            torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=bucket), optimizer)

    trainers = {"shoal": compiled(lambda: trainer(shoal.data_parallel), args)}
    trainers |= {f"shoal {plan}": trainer(functools.partial(shoal.data_parallel, plan=plan)) for plan in args.plans}
    steps = args.steps or int(same_everywhere(max(5, min(100, args.turn / trainers["shoal"].turn(5)))))
    best = 0.0
    if shoal.size() > 1 and not args.bounded:
        buckets = [bucket for bucket in args.buckets if bucket >= 1 or not args.compile]  # it divides the graph by no smaller ones
        by_bucket = compiled(lambda: {bucket: trainer(ddp(bucket)) for bucket in buckets}, args)
        fastest = min(by_bucket, key=lambda bucket: by_bucket[bucket].turn(steps))
        best = same_everywhere(fastest)
        trainers["ddp best"] = by_bucket[best]
        if best != args.buckets[-1]:
            trainers["ddp"] = by_bucket[args.buckets[-1]]
        if not args.replay:  # large ones have not the memory for each way
            trainers["ddp on shoal"] = trainer(ddp(best, on_shoal))
    elif shoal.size() == 1:
        trainers["plain"] = trainer(lambda model, optimizer: (model, optimizer))
    times, cpu = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(args.rounds):
        for way, one in trainers.items():
            began = cpu_seconds()
            times[way].append(one.turn(steps))
            cpu[way].append((cpu_seconds() - began) / steps)
    if dist.is_initialized():
        for way, spent in cpu.items():
            total = torch.tensor(spent, dtype=torch.float64)
            dist.all_reduce(total)
            cpu[way] = total.tolist()
    for measured in (times, cpu):  # of one size, one trainer
        if "ddp best" in measured:
            measured.setdefault("ddp", measured["ddp best"])
    plans = {way: json.loads(one.model.plan) for way, one in trainers.items() if shoal.size() > 1 and isinstance(one.model, shoal.parallel.DataParallel)}
    shown = summary(plans["shoal"], trainers["shoal" if args.bounded else "ddp best"].computing()) if plans else None
    if args.bounded:
        for way in ("ddp", "ddp best"):
            times[way], cpu[way] = [shown["ddp"]] * args.rounds, [math.nan] * args.rounds
    return {"model": name, "bucket": best, "steps": steps, "times": times, "cpu": cpu,
            "predicted": {way: plan["predicted_seconds"] for way, plan in plans.items()}, "plan": shown}


def summary(plan: dict, computing: float) -> dict:
    """What the plan was made from and what it came to. link / computing: how long whole gradients would take on the links, over Trainer.computing().
    ddp: seconds that DistributedDataParallel takes at least, whose gradients leave and arrive between two forward passes."""
    size = sum(unit["bytes"] for unit in plan["units"])
    link = 2 * (plan["ranks"] - 1) / plan["ranks"] * size / plan["link"]["rate"]
    ways = collections.Counter(unit["way"] for unit in plan["units"])
    forward, backward = plan["forward_seconds"], plan["backward_seconds"]
    return {"link / computing": link / computing, "order": plan["order"], "ways": ways, "ddp": forward + max(link - plan["link"].get("saves", 0) / plan["link"]["rate"], backward),
            "ideal": ideal(plan["tensors"], link, forward, backward)}


def ideal(tensors: list[dict], link: float, forward: float, backward: float) -> float:
    """Seconds that whole gradients (of one type, `link` seconds in all) take at least in whatever order: C, or F + B, or those of F and B from a layer on and
    of C up to it (docs/plans.md)."""
    seconds_each = link / sum(tensor["count"] for tensor in tensors)
    least, up_to_here = max(link, forward + backward), 0.0
    for tensor in sorted(tensors, key=lambda tensor: tensor.get("forward_at", forward)):  # of what nobody knows the first use, as if it were last
        up_to_here += seconds_each * tensor["count"]
        least = max(least, forward - tensor.get("forward_at", forward) + tensor["backward_at"] + up_to_here)
    return least


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", choices=sorted({*models.MODELS, *shoal.models.MODELS}), required=True)
    parser.add_argument("--data", default=SYNTHETIC, help="where the data of a model of the zoo is")
    parser.add_argument("--places", type=int, default=1000, help="of a text, at most")
    parser.add_argument("--buckets", type=float, nargs="+", required=True, help="MB: of DDP, the last is called its default")
    parser.add_argument("--replay", action="store_true", help="computing of a model of the zoo as it was recorded (replayed.py)")
    parser.add_argument("--asleep", action="store_true", help="fully connected layers of it, too")
    parser.add_argument("--bounded", action="store_true", help="DDP is not run: what it takes at least stands in for it")
    parser.add_argument("--plans", nargs="*", default=[], help="to be compared with what Shoal chooses")
    parser.add_argument("--warmup", type=int, default=8, help="steps of each way before the first turn")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=0, help="a turn; 0: as many as fit --turn")
    parser.add_argument("--turn", type=float, default=1, help="seconds")
    parser.add_argument("--autocast", action="store_true", help="forward in bfloat16")
    parser.add_argument("--compile", action="store_true", help="torch.compile around every way")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where models and batches lie; all members share the first one")
    parser.add_argument("--store", default="127.0.0.1:29600", help="host:port of DDP's store, on member 0")
    args = parser.parse_args()
    if args.replay and args.device != "cpu":
        parser.error("--replay is of what the CPU computed")
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
