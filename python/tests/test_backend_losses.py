"""A member is killed under PyTorch's own wrappers: the others' process group raises PeerLost, shrinks without a restart, and they train on."""

import os
import signal

import pytest
import torch
from torch import distributed

import shoal
from members import Members


def step(model, optimizer, fatal=False):
    optimizer.zero_grad()
    loss = model(torch.full((4, 8), 1.0 + distributed.get_rank())).square().mean()
    if fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()
    optimizer.step()


def wrapped(group=None):
    plain = torch.nn.Sequential(torch.nn.Linear(8, 500), torch.nn.Tanh(), torch.nn.Linear(500, 1))
    model = torch.nn.parallel.DistributedDataParallel(plain, bucket_cap_mb=0.01, process_group=group)
    return plain, model, torch.optim.SGD(plain.parameters(), lr=0.01)


def lose(victim, model, optimizer):
    """The victim dies in a step; the others hear of it and shrink to the group that is left."""
    try:
        step(model, optimizer, fatal=distributed.get_rank() == victim)
        step(model, optimizer)
        raise AssertionError("nobody missed it")
    except shoal.PeerLost as error:
        assert f"rank {victim} (" in str(error)
    return distributed.shrink_group([victim], shrink_flags=distributed.distributed_c10d.SHRINK_ABORT)


def under_ddp(victim, steps):
    torch.manual_seed(0)
    plain, model, optimizer = wrapped()
    for k in range(steps):
        step(model, optimizer)
    kept = {name: value.clone() for name, value in plain.state_dict().items()}
    group = lose(victim, model, optimizer)
    # PyTorch registers a shrunk group's backend as if it were gloo, and DistributedDataParallel believes that (a crash): a group of the same members.
    plain, again, optimizer = wrapped(distributed.new_group(backend="shoal"))  # a reducer that failed in the middle serves no more, nor do the parameters that it looks at
    plain.load_state_dict(kept)  # some may have taken the step
    for k in range(steps):
        step(again, optimizer)
    return group.size(), [p.detach().sum().item() for p in plain.parameters()]


@pytest.mark.parametrize("victim", [0, 1])
def test_ddp_goes_on_in_the_shrunk_group(victim):
    group = Members(3)
    left = [rank for rank in range(3) if rank != victim]
    try:
        group.start(under_ddp, victim, 4)
        answers = group.results(ranks=left)
        assert [size for size, _ in answers] == [2, 2]
        assert answers[0] == answers[1], "survivors differ"
    finally:
        group.close()


def under_fsdp(victim):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 500), torch.nn.Tanh(), torch.nn.Linear(500, 1))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step(model, optimizer)
    group = lose(victim, model, optimizer)
    total = torch.tensor([10.0 ** distributed.get_rank()])
    distributed.all_reduce(total)
    return group.size(), total.item()


def test_under_fsdp_the_loss_is_an_error_and_the_group_shrinks():
    """The shards of the lost are in no other memory: what goes on begins from a checkpoint, in the group that is left."""
    group = Members(3)
    try:
        group.start(under_fsdp, 2)
        assert group.results(ranks=[0, 1]) == [(2, 11.0), (2, 11.0)]
    finally:
        group.close()
