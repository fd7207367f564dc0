"""Parameters of which every member steps a part ("owners"): training has the bits of one process that steps all; whoever looks at a parameter, a gradient or
the optimizer's state sees all of it, without the others' help."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

import shoal
import tiny
from pool import launch, notes_of_run
from test_divided import Net, loss, moments

PLAN = "direct,wide.weight=owners,deep.weight=owners"  # the rest in rank order, too
MEASURED, STEPS = 3, 7  # the plan takes over after the first ones, whose means may be added in other orders
OPTIMIZERS = {
    "sgd": lambda of: torch.optim.SGD(of, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda of: torch.optim.Adam(of, lr=0.01),
    "adamw": lambda of: torch.optim.AdamW(of, lr=0.01, amsgrad=True),
}


def made(optimizer):
    net = Net()
    large = [p for p in net.parameters() if p.numel() > 20_000]
    return net, OPTIMIZERS[optimizer]([{"params": large, "lr": 0.02}, {"params": [p for p in net.parameters() if p.numel() <= 20_000]}])


def samples(form, rank):
    return {"uneven": 2 + 3 * rank, "one without": 0 if rank == 1 else 5}.get(form, 8)


def backward(net, form, step, rank):
    if form == "accumulated":
        loss(net, 100 + step, rank, 8).backward()
    loss(net, step, rank, samples(form, rank)).backward()


def train(optimizer, form):
    net, optimizer = made(optimizer)
    net, optimizer = shoal.data_parallel(net, optimizer, plan=PLAN)
    rank, schedule = shoal.rank(), torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for step in range(STEPS):
        if step == MEASURED:
            begun = copy.deepcopy((net.module.state_dict(), optimizer.state_dict(), schedule.state_dict(), [p.grad for p in net.parameters()]))
        if form != "kept":
            optimizer.zero_grad()
        if form == "accumulated":
            with net.no_sync():
                loss(net, 100 + step, rank, 8).backward()
        loss(net, step, rank, samples(form, rank)).backward()
        if form == "clipped":
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    held = sum(value.numel() for of in vars(optimizer)["state"].values() for value in of.values() if isinstance(value, torch.Tensor) and value.dim() > 0)
    state = moments(optimizer.state_dict()["state"])
    return len(net._core.divided), held, begun, [tiny.values(net), state, [p.grad for p in net.parameters()]]


def oracle(optimizer, form, members, begun):
    """One process that runs every member's samples, adds gradients in rank order, and steps all."""
    net, optimizer = made(optimizer)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for each, state in zip((net, optimizer, schedule), begun):
        each.load_state_dict(state)
    for parameter, gradient in zip(net.parameters(), begun[3]):
        parameter.grad = gradient
    counts = [samples(form, rank) for rank in range(members)]
    for step in range(MEASURED, STEPS):
        before = [p.grad for p in net.parameters()]
        parts = [tiny.gradients(net, lambda n, r=rank: backward(n, form, step, r)) if counts[rank] else [None] * len(before) for rank in range(members)]
        if form == "kept":  # each adds to what is there
            parts = [[g + b for g, b in zip(part, before)] for part in parts]
        for parameter, mean in zip(net.parameters(), tiny.mean_in_rank_order(parts, counts if form == "uneven" else None)):
            parameter.grad = mean * members / sum(n > 0 for n in counts) if form == "one without" else mean
        if form == "clipped":
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    return [tiny.values(net), moments(optimizer.state_dict()["state"]), [p.grad for p in net.parameters()]]


CASES = [("sgd", "plain", 3), ("adam", "plain", 2), ("adamw", "plain", 3), ("sgd", "uneven", 2), ("adam", "one without", 2), ("sgd", "accumulated", 2),
         ("adam", "clipped", 2), ("sgd", "kept", 2)]


@pytest.mark.parametrize("optimizer, form, members", CASES)
def test_training_has_the_bits_of_one_process(pool, optimizer, form, members):
    results = pool(members).run(train, optimizer, form)
    expected = oracle(optimizer, form, members, results[0][2])
    for divided, held, _, ours in results:
        assert divided == 2
        assert held < 0.6 * sum(m.numel() for m in expected[1])  # state is at the owners alone
        assert all(map(tiny.equal, ours, expected))
