"""What members do in test_frameworks.py: PyTorch's own ways to shard a model, each on a given group or mesh."""

import torch
import torch.distributed.checkpoint as dcp
from torch import distributed, nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from members import gloo

WIDTH, WORDS = 32, 50


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.first, self.second = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return x + self.second(torch.relu(self.first(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.out(self.blocks(self.words(x)))


def batch(step, rank, size):
    """This member's part of 8 rows: the same whole on any number of members."""
    generator = torch.Generator().manual_seed(step)
    rows = torch.randint(0, WORDS, (8, 10), generator=generator).chunk(size)[rank]
    return rows, (7 * rows + 3) % WORDS


class Sharded:
    def __init__(self, mesh):
        torch.manual_seed(1)
        self.model = Model()
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.mesh = mesh

    def step(self, step):
        inputs, wanted = batch(step, distributed.get_rank(), distributed.get_world_size())
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(inputs).flatten(0, 1), wanted.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def state(self):
        return {"model": get_model_state_dict(self.model), "optimizer": get_optimizer_state_dict(self.model, self.optimizer)}

    def take(self, state):
        set_model_state_dict(self.model, state["model"])
        set_optimizer_state_dict(self.model, self.optimizer, state["optimizer"])


def one_dimension(group=None):
    return DeviceMesh.from_group(group or distributed.group.WORLD, "cpu")


def fsdp(steps, folder):
    """Losses of training on ours and on gloo's; ours is then saved."""
    ours, theirs = Sharded(one_dimension()), Sharded(one_dimension(gloo()))
    losses = [(ours.step(step), theirs.step(step)) for step in range(steps)]
    dcp.save(ours.state(), checkpoint_id=folder)
    return losses, [ours.step(step) for step in range(steps, steps + 3)]


def fsdp_resumed(first, folder):
    """Three steps from the checkpoint, which another number of members has written."""
    sharded = Sharded(one_dimension())
    state = sharded.state()
    dcp.load(state, checkpoint_id=folder)
    sharded.take(state)
    return [sharded.step(step) for step in range(first, first + 3)]


def fsdp_hybrid():
    """Replicas of shards: reduce-scatter inside, all-reduce across; against plain sharding on gloo."""
    ours, theirs = Sharded(init_device_mesh("cpu", (2, 2), mesh_dim_names=("replica", "shard"))), Sharded(one_dimension(gloo()))
    return [(ours.step(step), theirs.step(step)) for step in range(5)]


def saved_in_the_background(folder):
    sharded = Sharded(one_dimension())
    sharded.step(0)
    writing = dcp.async_save(sharded.state(), checkpoint_id=folder, process_group=distributed.new_group())
    expected = [sharded.step(step) for step in range(1, 4)]  # collectives go on meanwhile
    writing.result()
    return expected


def mesh():
    """Both dimensions of a mesh, flattened too."""
    rank = distributed.get_rank()
    two = init_device_mesh("cpu", (2, 2), mesh_dim_names=("row", "column"))
    sums = []
    for group in (two.get_group("row"), two.get_group("column"), two["row", "column"]._flatten("both").get_group()):
        tensor = torch.tensor([10.0 ** rank])
        distributed.all_reduce(tensor, group=group)
        sums.append(tensor.item())
    return sums


def tensors():
    """DTensor: the same operations on our mesh and on gloo's."""
    results = []
    for of_group in (one_dimension(), one_dimension(gloo())):
        torch.manual_seed(2)
        left = distribute_tensor(torch.randn(8, 12), of_group, [Shard(0)])
        right = distribute_tensor(torch.randn(12, 8), of_group, [Shard(1)])
        product = (left @ right.redistribute(of_group, [Replicate()])).redistribute(of_group, [Shard(1)])
        partial = left.redistribute(of_group, [Shard(1)]) @ right.redistribute(of_group, [Shard(0)])
        results.append([part.full_tensor() for part in (product, partial, product.sum(), partial.max())])
        assert isinstance(product, DTensor)
    return [float((ours - theirs).abs().max()) for ours, theirs in zip(*results)]


def tensor_parallel():
    losses = []
    for of_group in (one_dimension(), one_dimension(gloo())):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        model = parallelize_module(model, of_group, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses.append([])
        for step in range(5):
            inputs = torch.randn(6, 16, generator=torch.Generator().manual_seed(step))  # the same on all members
            optimizer.zero_grad()
            loss = (model(inputs) - inputs).square().mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    return list(zip(*losses))


def pipeline(schedule):
    """Four stages, eight micro-batches: losses and this stage's gradient, on ours and on gloo's."""
    rank, size = distributed.get_rank(), distributed.get_world_size()
    results = []
    for group in (distributed.group.WORLD, gloo()):
        torch.manual_seed(4 + rank)
        part = nn.Sequential(nn.Linear(10, 10), nn.Tanh())
        stage = PipelineStage(part, rank, size, torch.device("cpu"), group=group)
        kind = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}[schedule]
        run = kind(stage, n_microbatches=8, loss_fn=nn.functional.mse_loss)
        inputs = torch.randn(16, 10, generator=torch.Generator().manual_seed(5))
        losses = []
        if rank == 0:
            run.step(inputs)
        elif rank == size - 1:
            run.step(target=inputs, losses=losses)
        else:
            run.step()
        results.append([*losses, *(parameter.grad for parameter in part.parameters())])
    return [float((ours - theirs).abs().max()) for ours, theirs in zip(*results)]
