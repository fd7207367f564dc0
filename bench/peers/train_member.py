"""One member of a training run on random images of Fashion-MNIST's shape; started by bench/training.py.

    --way shoal          shoal.data_parallel
    --way ddp            PyTorch's DistributedDataParallel on gloo, --bucket-mb
    --way ddp-on-shoal   the same on Shoal's backend
    --way plain          no parallelism: one process

Rank 0 prints one JSON line: seconds of each timed iteration, all members' CPU seconds an iteration, a digest of the loss.
"""

import argparse
import json
import os
import resource
import time

import torch
import torch.nn.functional as F

import models


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=["shoal", "ddp", "ddp-on-shoal", "plain"], required=True)
    parser.add_argument("--bucket-mb", type=float, default=25)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--warmup", type=int, default=8)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--store", default="127.0.0.1:29600", help="host:port of DDP's store, on member 0")
    args = parser.parse_args()
    torch.set_num_threads(max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))
    rank, size = int(os.environ.get("SHOAL_RANK", "0")), int(os.environ.get("SHOAL_SIZE", "1"))
    torch.manual_seed(1)
    model = models.MODELS[args.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    shown = model
    if args.way == "shoal":
        import shoal

        shoal.init()
        shown, optimizer = shoal.data_parallel(model, optimizer)
    elif args.way.startswith("ddp"):
        import torch.distributed as dist

        if args.way == "ddp-on-shoal":
            import shoal  # registers the backend
        dist.init_process_group("gloo" if args.way == "ddp" else "shoal", init_method=f"tcp://{args.store}", rank=rank, world_size=size)
        shown = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb)
    generator = torch.Generator().manual_seed(100 + rank)
    images = torch.randn(args.batch, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (args.batch,), generator=generator)
    times, losses = [], []
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            cpu = cpu_seconds()
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(shown(images), labels)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(loss.item())
    spent = (cpu_seconds() - cpu) / args.steps
    if rank == 0:
        print(json.dumps({"times": times[args.warmup:], "cpu": spent, "loss": losses[-1]}), flush=True)
    if args.way.startswith("ddp"):
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
