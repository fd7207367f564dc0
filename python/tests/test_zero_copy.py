"""DistributedDataParallel's buckets in memory that members of one host read where it lies: the same gradients, and bytes that were not copied."""

import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import tiny
from members import of_module, rank

SIZE = 3
STEPS = 3


members = of_module(SIZE)


def backend():
    return distributed.group.WORLD._get_backend(torch.device("cpu"))


def train(lent):
    """What it ends with, bytes sent meanwhile, and how many of them were lent."""
    os.environ["DDP_DISABLE_COMM_MEM"] = "0" if lent else "1"
    torch.manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(6, 300), torch.nn.Tanh(), torch.nn.Linear(300, 300), torch.nn.Tanh(), torch.nn.Linear(300, 3))
    ddp = DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = tiny.sgd(ddp)
    before = backend().sent
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(ddp, step, rank()).backward()
        optimizer.step()
    after = backend().sent
    return tiny.values(net), after[0] - before[0], after[1] - before[1]


def both():
    return train(False), train(True)


def test_buckets_are_read_where_they_lie(members):
    for (plain, sent, copied), (values, _, lent) in members.run(both):
        assert tiny.equal(values, plain)
        assert copied == 0
        assert lent > 0.9 * sent  # but for a few numbers beside the buckets


def outlives():
    """A tensor of a group that is gone is still there."""
    group = distributed.new_group()
    tensor = group._get_backend(torch.device("cpu")).allocate_tensor(1000, dtype=torch.float64, device=torch.device("cpu")).fill_(rank())
    distributed.all_reduce(tensor, group=group)
    distributed.destroy_process_group(group)
    return tensor.sum().item()


def test_memory_outlives_its_group(members):
    assert members.run(outlives) == [1000.0 * sum(range(SIZE))] * SIZE
