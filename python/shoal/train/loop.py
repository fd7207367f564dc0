"""The training loop of `shoal train`, from the first step to the test accuracy."""

import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F

import shoal
from shoal import session

from ..errors import mistake
from . import models, report
from .fashion import Images
from .keep import Keeper
from .order import Order
from .progress import Progress


@dataclass
class Interval:
    """What happened since the last line that was shown."""

    began: float
    bytes_sent: int
    steps: int = 0

    def images_per_second(self, batch: int) -> float:
        return self.steps * batch / max(1e-9, time.monotonic() - self.began)

    def megabytes_per_second(self, sent: int) -> float:
        return (sent - self.bytes_sent) / 1e6 / max(1e-9, time.monotonic() - self.began)


def train(arguments, training: Images, test: Images) -> None:
    here = session.current()
    whole_batch = arguments.batch * here.size
    if len(training) < whole_batch:
        raise mistake("--batch", f"{here.size} x {arguments.batch} images a step, the data has {len(training)}")
    order = Order(len(training), arguments.batch, arguments.epochs, arguments.seed, here)
    torch.manual_seed(arguments.seed)
    model = models.make(arguments.model)
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    model, optimizer = shoal.data_parallel(model, optimizer, plan=arguments.plan)
    keeper = Keeper(arguments, model, optimizer, order)
    taken = keeper.begin()
    steps = taken + len(order)
    steps = min(steps, arguments.steps) if arguments.steps else steps

    first = here.rank == 0
    if first and not arguments.json:
        print(f"{arguments.model}: {models.PARAMETERS[arguments.model]:,} parameters, {len(training):,} + {len(test):,} images, {here.size} "
              f"member{'s' * (here.size > 1)} x {arguments.batch}, {steps} steps{f', going on after {taken}' * (taken > 0)}", file=sys.stderr, flush=True)
    progress = Progress(steps, first and not arguments.json)
    began = time.monotonic()
    interval = Interval(began, _sent(here))
    model.train()
    loss = None
    for step in range(taken + 1, steps + 1):
        pixels, labels = training.batch(order.next())
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pixels), labels)
        loss.backward()
        optimizer.step()
        interval.steps += 1
        if first:
            shoal.metric("loss", loss.item(), step)
        if progress.due(step):
            progress.show(step, _facts(loss.item(), interval, whole_batch, here, model))
            interval = Interval(time.monotonic(), _sent(here))
        keeper.after(step, last=step == steps)
    progress.end()
    seconds = time.monotonic() - began

    accuracy = evaluate(model, test, here)
    if first:
        shoal.metric("test_accuracy", accuracy, steps)
    summary = {"model": arguments.model, "members": here.size, "steps": steps, "seconds": seconds, "loss": None if loss is None else loss.item(),
               "accuracy": accuracy, "images_per_second": (steps - taken) * whole_batch / seconds, "hidden": _hidden(model),
               "bytes_sent": _sent(here)}
    report.finish(summary, here, arguments.json)


@torch.no_grad()
def evaluate(model, test: Images, here) -> float:
    """Test accuracy; each member classifies a part."""
    model.eval()
    mine = torch.arange(here.rank, len(test), here.size)
    right = 0
    for chosen in mine.split(1000):
        pixels, labels = test.batch(chosen)
        right += int((model(pixels).argmax(1) == labels).sum())
    return sum(int(part) for part in here.gather(str(right).encode(), "test accuracy")) / len(test)


def _sent(here) -> int:
    return sum(link["sent"] for link in here.links())


def _hidden(model) -> float | None:
    """The share of communication that training did not wait for."""
    whole, exposed = model.communication()
    return max(0.0, 1 - exposed / whole) if whole > 0 else None


def _facts(loss: float, interval: Interval, batch: int, here, model) -> str:
    facts = f"loss {loss:.4f}  {interval.images_per_second(batch):,.0f} images/s"
    if here.size > 1:
        facts += f"  {interval.megabytes_per_second(_sent(here)):.1f} MB/s per link  {_hidden(model):.0%} hidden"
    return facts
