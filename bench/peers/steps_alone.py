"""One process of bench/heap.py that trains alone: prints, as JSON, ms of a step, pages that the kernel mapped in it, and MB of memory at most."""

import json
import resource
import statistics
import sys
import time

import torch

import shoal
from shoal.train.tasks import SYNTHETIC, Task

WARMUP = 4


def main() -> None:
    way, name, batch, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    task, model = Task(name), shoal.models.build(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    *inputs, targets = task.read(SYNTHETIC, batch, 1)[0].batch(torch.arange(batch))
    if way == "shoal":
        shoal.init()
        model, optimizer = shoal.data_parallel(model, optimizer)
    seconds, pages = [], []
    for _ in range(WARMUP + steps):
        faults, began = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
        optimizer.zero_grad()
        task.loss(model(*inputs), targets).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
        pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
    print(json.dumps({"ms": 1e3 * statistics.median(seconds[WARMUP:]), "pages": statistics.median(pages[WARMUP:]),
                      "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
