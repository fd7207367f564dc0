"""One member that ends after the first step of a small model: by Shoal, or by DistributedDataParallel on gloo. Started by bench/start.py.
Prints the moment at which the step was taken, on the clock that all processes of a machine share."""

import sys
import time

import models
import torch


def main() -> None:
    if sys.argv[1] == "shoal":
        import shoal

        shoal.init()
    else:
        torch.distributed.init_process_group("gloo")
    model = models.lenet()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    if sys.argv[1] == "shoal":
        model, optimizer = shoal.data_parallel(model, optimizer)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    model(torch.zeros(32, 1, 28, 28)).sum().backward()
    optimizer.step()
    print(f"first step at {time.clock_gettime(time.CLOCK_MONOTONIC)}", flush=True)
    if sys.argv[1] == "gloo":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
