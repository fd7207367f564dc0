"""One member of bench/time_to_loss.py: trains by one plan after another until the held-out loss is at most the target. Rank 0 prints a JSON
line for each: seconds without those of looking, steps, bytes that it sent, the loss at the end."""

import argparse
import json
import time

import torch
import torch.nn.functional as F

import models
import shoal
from shoal import session
from shoal.train import fashion
from traffic import bytes_sent

HELD_OUT = 4000  # of the test images, shared among members
WARMUP = 4       # steps in which the links are measured, once for all plans


@torch.no_grad()
def held_out_loss(net, images) -> float:
    """Of all members' parameters, each on its share of the images: alike where members have just come together."""
    here = session.current()
    pixels, labels = images.batch(torch.arange(here.rank, min(HELD_OUT, len(images)), here.size))
    nats = F.cross_entropy(net(pixels), labels, reduction="sum").item()
    parts = [json.loads(part) for part in here.gather(json.dumps([nats, len(labels)]).encode(), "held-out loss")]
    return sum(nats for nats, _ in parts) / sum(n for _, n in parts)


def train(plan: str, steps: int, args, images, held_out) -> dict:
    torch.manual_seed(1)
    net = models.MODELS[args.model]()
    each_steps = plan.startswith("ps:") and not plan.startswith("ps:bsp")  # every member's gradient is a step of its own
    rate = args.lr / shoal.size() if each_steps else args.lr
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9), plan)
    order = torch.Generator().manual_seed(7)
    sent, seconds, loss = bytes_sent(), 0.0, float("inf")
    for step in range(1, steps + 1):
        began = time.perf_counter()
        everybodys = torch.randint(len(images), (shoal.size(), args.batch), generator=order)
        pixels, labels = images.batch(everybodys[shoal.rank()])
        optimizer.zero_grad()
        F.cross_entropy(net(pixels), labels).backward()
        optimizer.step()
        looks = step % args.every == 0 or step == steps
        if looks:
            shoal.flush()
        seconds += time.perf_counter() - began
        if looks:
            loss = held_out_loss(net, held_out)
            if loss <= args.target:
                break
    line = {"plan": plan, "loss": loss, "seconds": seconds, "steps": step, "bytes": bytes_sent() - sent}
    net.release()
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--plans", nargs="+", default=["auto"])
    parser.add_argument("--data", required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--target", type=float, default=0.45)
    parser.add_argument("--steps", type=int, default=960)
    parser.add_argument("--every", type=int, default=32)
    args = parser.parse_args()
    torch.set_num_threads(1)
    shoal.init()
    images, held_out = fashion.read(args.data)
    train("auto", WARMUP, args, images, held_out)
    for plan in args.plans:
        line = train(plan, args.steps, args, images, held_out)
        if shoal.rank() == 0:
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
