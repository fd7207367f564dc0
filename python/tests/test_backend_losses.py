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


def sharded(mesh=None):
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 500), torch.nn.Tanh(), torch.nn.Linear(500, 1))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)


def under_fsdp(victim):
    model, optimizer = sharded()
    step(model, optimizer)
    group = lose(victim, model, optimizer)
    total = torch.tensor([10.0 ** distributed.get_rank()])
    distributed.all_reduce(total)
    return group.size(), total.item()


def state_of(model, optimizer):
    from torch.distributed.checkpoint.state_dict import get_state_dict

    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments}


def under_fsdp_from_a_checkpoint(victim, folder, before, after):
    """Steps by three, whose last is kept; a loss; from what was kept, steps by two."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import set_state_dict
    from torch.distributed.device_mesh import DeviceMesh

    model, optimizer = sharded()
    for _ in range(before):
        step(model, optimizer)
    checkpoint.save(state_of(model, optimizer), checkpoint_id=folder)
    lose(victim, model, optimizer)
    group = distributed.new_group(backend="shoal")
    model, optimizer = sharded(DeviceMesh.from_group(group, "cpu"))
    state = state_of(model, optimizer)
    checkpoint.load(state, checkpoint_id=folder, process_group=group)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for _ in range(after):
        step(model, optimizer)
    return distributed.get_rank(), [p.full_tensor().detach().clone() for p in model.parameters()]


def alone(steps):
    """The same by one process. steps: the ranks that take each."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 500), torch.nn.Tanh(), torch.nn.Linear(500, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for ranks in steps:
        optimizer.zero_grad()
        for rank in ranks:
            (model(torch.full((4, 8), 1.0 + rank)).square().mean() / len(ranks)).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("victim", [0, 2])
def test_fsdp_goes_on_from_a_checkpoint_in_the_shrunk_group(tmp_path, victim):
    """Oracle: one process that takes the same steps, with momentum; who is left counts its ranks anew."""
    group = Members(3)
    left = [rank for rank in range(3) if rank != victim]
    try:
        group.start(under_fsdp_from_a_checkpoint, victim, str(tmp_path / "kept"), 3, 4)
        answers = group.results(ranks=left)
    finally:
        group.close()
    ranks = [rank for rank, _ in answers]
    expected = alone([[0, 1, 2]] * 3 + [ranks] * 4)
    for _, values in answers:
        for ours, theirs in zip(values, expected, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_under_fsdp_the_loss_is_an_error_and_the_group_shrinks():
    """The shards of the lost are in no other memory: what goes on begins from a checkpoint, in the group that is left."""
    group = Members(3)
    try:
        group.start(under_fsdp, 2)
        assert group.results(ranks=[0, 1]) == [(2, 11.0), (2, 11.0)]
    finally:
        group.close()
