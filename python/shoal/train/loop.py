"""The training loop of `shoal train`, from the first step to the held-out figure."""

import sys
import time
from dataclasses import dataclass

import torch

import shoal
from shoal import models, session

from ..errors import mistake
from . import report
from .keep import Keeper
from .order import Order
from .progress import Progress
from .tasks import Task, count, evaluate


@dataclass
class Interval:
    """What happened since the last line that was shown."""

    began: float
    bytes_sent: int
    units: int = 0  # of this member: images, tokens

    def units_per_second(self, members: int) -> float:
        return self.units * members / max(1e-9, time.monotonic() - self.began)

    def megabytes_per_second(self, sent: int) -> float:
        return (sent - self.bytes_sent) / 1e6 / max(1e-9, time.monotonic() - self.began)


def train(arguments, task: Task, training, held_out) -> None:
    """held_out: None where there is nothing to learn."""
    here = session.current()
    whole_batch = arguments.batch * here.size
    if len(training) < whole_batch:
        raise mistake("--batch", f"{here.size} x {arguments.batch} {training} a step, the data has {len(training)}")
    order = Order(len(training), arguments.batch, arguments.epochs, arguments.seed, here)
    torch.manual_seed(arguments.seed)
    model = models.build(arguments.model)
    optimizer = _optimizer(model, arguments)
    model, optimizer = shoal.data_parallel(model, optimizer, plan=arguments.plan)
    keeper = Keeper(arguments, model, optimizer, order)
    came = here.arriving
    state = shoal.State(model, optimizer, step=0, place=order.place(), keeper=keeper)
    taken = state.step if came else keeper.begin()
    if came:
        order.go_to(state.place)
    steps = taken + len(order)
    steps = min(steps, arguments.steps) if arguments.steps else steps

    def first() -> bool:
        """Says what one of all has to say: who that is changes when members are lost."""
        return here.place == 0

    if first() and not came and not arguments.json:
        samples = f"{len(training):,} + {len(held_out):,} {training}" if held_out else f"{training}: nothing is learned"
        print(f"{arguments.model}: {task.described['parameters']:,} parameters, {samples}, {here.size} member{'s' * (here.size > 1)} x "
              f"{arguments.batch}, {steps} steps{f', going on after {taken}' * (taken > 0)}", file=sys.stderr, flush=True)
    progress = Progress(steps, lambda: first() and not arguments.json)
    began = time.monotonic()
    interval = Interval(began, _sent(here))
    units = 0
    model.train()
    loss = None
    for step in range(taken + 1, steps + 1):
        state.step, state.place = step - 1, order.place()
        if here.rejoins:  # what a lost member would have drawn
            torch.manual_seed(((arguments.seed * steps + step) * here.size + here.rank) % (1 << 64))
        *inputs, targets = training.batch(order.next())
        n = count(targets)
        optimizer.zero_grad()
        model.samples(n)
        loss = task.loss(model(*inputs), targets)
        loss.backward()
        optimizer.step()
        interval.units += n
        units += n
        if first():
            shoal.metric("loss", loss.item(), step)
        if progress.due(step):
            progress.show(step, _facts(loss.item(), interval, task, here, model))
            interval = Interval(time.monotonic(), _sent(here))
        keeper.after(step, last=step == steps)
    model.flush()
    progress.end()
    seconds = time.monotonic() - began

    result = evaluate(model, task, held_out, here) if held_out else {}
    if first():
        for name, value in result.items():
            shoal.metric(f"test_{name}" if name == "accuracy" else name, value, steps)
    left = len(here.members)
    summary = {"model": arguments.model, "members": left, "steps": steps, "seconds": seconds, "loss": None if loss is None else loss.item(),
               **result, f"{task.unit}_per_second": units * left / seconds, "synthetic": held_out is None, "hidden": _hidden(model),
               "bytes_sent": _sent(here)}
    report.finish(summary, task.unit, here, arguments.json)


def _optimizer(model, arguments) -> torch.optim.Optimizer:
    """Fused: one pass over the parameters, a sixth of the time."""
    if arguments.sgd is None:
        return torch.optim.Adam(model.parameters(), lr=arguments.lr or 0.001, fused=True)
    return torch.optim.SGD(model.parameters(), lr=arguments.lr or 0.05, momentum=arguments.sgd, fused=True)


def _sent(here) -> int:
    return sum(link["sent"] for link in here.links())


def _hidden(model) -> float | None:
    """The share of communication that training did not wait for."""
    whole, exposed = model.communication()
    return max(0.0, 1 - exposed / whole) if whole > 0 else None


def _facts(loss: float, interval: Interval, task: Task, here, model) -> str:
    facts = f"loss {loss:.4f}  {report.rate(interval.units_per_second(len(here.members)), task.unit)}"
    if here.size > 1:
        hidden = _hidden(model)  # before local steps come together for the first time nothing is known
        facts += f"  {interval.megabytes_per_second(_sent(here)):.1f} MB/s per link" + (f"  {hidden:.0%} hidden" if hidden is not None else "")
    return facts
