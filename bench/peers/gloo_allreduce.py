"""The peer: PyTorch's own gloo. One member; started by bench/allreduce.py with the place in SHOAL_RANK and SHOAL_SIZE.

Prints one JSON line a size (rank 0): seconds of each repetition, all members' CPU seconds, whether the sum was right.
"""

import argparse
import json
import os
import resource
import time

import torch
import torch.distributed as dist


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="bytes")
    parser.add_argument("--repeats", type=int, default=10, help="all-reduces in a row")
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--store", required=True, help="host:port of the TCPStore, on member 0")
    args = parser.parse_args()
    rank, size = int(os.environ["SHOAL_RANK"]), int(os.environ["SHOAL_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{args.store}", rank=rank, world_size=size)
    for nbytes in args.sizes:
        count = nbytes // 4
        tensor = torch.full((count,), float(rank + 1))
        dist.all_reduce(tensor)
        right = bool((tensor == size * (size + 1) / 2).all())
        tensor.zero_()
        for _ in range(args.warmup):
            dist.all_reduce(tensor)
        dist.barrier()
        times, cpu = [], cpu_seconds()
        for _ in range(args.repeats):
            begin = time.perf_counter()
            dist.all_reduce(tensor)
            times.append(time.perf_counter() - begin)
        spent = torch.tensor([cpu_seconds() - cpu], dtype=torch.float64)
        dist.all_reduce(spent)
        if rank == 0:
            print(json.dumps({"bytes": nbytes, "times": times, "cpu": spent.item() / args.repeats, "right": right}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
