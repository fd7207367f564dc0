"""One member of a training run that counts its bytes over some steps; started by bench/bytes.py.

Rank 0 prints one JSON line: for every member payload bytes (LinkStats `sent`), the same with frame headers, credit and
heartbeats, and what its interface transmitted (0 without a lab); and what the formula says. Steps before --warmup, in which
the network is probed and the plan chosen, do not count.
"""

import argparse
import json
import pathlib

import torch
import torch.nn.functional as F

import models
import shoal
from shoal import session

INTERFACE = pathlib.Path("/sys/class/net/c0/statistics/tx_bytes")  # a lab host's only one


def counters(here) -> list[int]:
    links = here.links()
    transmitted = int(INTERFACE.read_text()) if INTERFACE.exists() else 0
    return [sum(link["sent"] for link in links), sum(link["wire_sent"] for link in links), transmitted]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--warmup", type=int, default=8)
    parser.add_argument("--steps", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = models.MODELS[args.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    shown, optimizer = shoal.data_parallel(model, optimizer)
    here = session.current()
    images, labels = torch.randn(8, 1, 28, 28), torch.randint(0, 10, (8,))
    for step in range(args.warmup + args.steps):
        if step == args.warmup:
            shown.flush()
            here.gather(b"", "before the steps that count")
            before = counters(here)
        optimizer.zero_grad()
        F.cross_entropy(shown(images), labels).backward()
        optimizer.step()
    shown.flush()
    here.gather(b"", "after the steps that count")
    mine = [after - b for after, b in zip(counters(here), before)]
    everybody = [json.loads(one) for one in here.gather(json.dumps(mine).encode(), "what each has counted")]
    if here.rank == 0:
        size, parameters = here.size, sum(p.numel() for p in model.parameters())
        ways = sorted({unit["way"] for unit in json.loads(shown.plan)["units"]})
        print(json.dumps({"counted": everybody, "ways": ways, "formula": args.steps * 2 * (size - 1) / size * 4 * parameters}), flush=True)


if __name__ == "__main__":
    main()
