"""What members do in the tests of the backend. Each function runs on every member; results are plain values."""

import random

import torch
from torch import distributed

from members import gloo

OPS = {name: getattr(distributed.ReduceOp, name) for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int32, torch.int64]
MOVED = FLOATS + INTEGERS + [torch.bool]
SIZES = [0, 1, 2, 3, 7, 64, 1000, 4096, 20011, 70001]


def values(rank, site, count, dtype, spread=4):
    """Small whole numbers, so that sums and averages of a few are exact in every type; the same ones on whatever device is the default."""
    generator = torch.Generator("cpu").manual_seed(1000 * site + rank)
    low = 0 if dtype in (torch.uint8, torch.bool) else -spread
    return torch.randint(low, spread + 1, (count,), generator=generator, device="cpu").to(torch.get_default_device(), dtype)


def ops_of(dtype, size):
    if dtype == torch.bool:
        return ["PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
    if dtype.is_floating_point:
        # An average of three or five small numbers is not exact: both divide a sum, but half types may round it twice.
        return ["SUM", "PRODUCT", "MIN", "MAX"] + (["AVG"] if size == 2 or dtype in (torch.float32, torch.float64) else [])
    return ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


def one_of_each(group, name, rng, site):
    """One random collective on `group`; what this member ends with, as a list of tensors, and the work."""
    rank, size = distributed.get_rank(), distributed.get_world_size()
    count, dtype, root = rng.choice(SIZES), rng.choice(MOVED), rng.randrange(size)
    op = OPS[rng.choice(ops_of(dtype, size))]
    own = values(rank, site, count, dtype)
    later = {"group": group, "async_op": True}
    if name == "all_reduce":
        return [own], distributed.all_reduce(own, op, **later)
    if name == "reduce":
        return [own] if rank == root else [], distributed.reduce(own, root, op, **later)
    if name == "broadcast":
        return [own], distributed.broadcast(own, root, **later)
    if name == "all_gather":
        outs = [torch.empty_like(own) for _ in range(size)]
        return outs, distributed.all_gather(outs, own, **later)
    if name == "all_gather_into_tensor":
        out = torch.empty(size * count, dtype=dtype)
        return [out], distributed.all_gather_into_tensor(out, own, **later)
    if name == "gather":
        outs = [torch.empty_like(own) for _ in range(size)] if rank == root else None
        return outs or [], distributed.gather(own, outs, root, **later)
    if name == "scatter":
        ins = [values(rank, site + 7 * r, count, dtype) for r in range(size)] if rank == root else None
        out = torch.empty_like(own)
        return [out], distributed.scatter(out, ins, root, **later)
    if name == "reduce_scatter_tensor":
        whole = values(rank, site, size * count, dtype)
        out = torch.empty(count, dtype=dtype)
        return [out], distributed.reduce_scatter_tensor(out, whole, op, **later)
    if name == "all_to_all_single":
        sends = [[rng.randrange(5) * (count // 8 + 1) for _ in range(size)] for _ in range(size)]
        own = values(rank, site, sum(sends[rank]), dtype)
        takes = [sends[r][rank] for r in range(size)]
        out = torch.empty(sum(takes), dtype=dtype)
        return [out], distributed.all_to_all_single(out, own, takes, sends[rank], **later)
    assert name == "barrier"
    return [], distributed.barrier(**later)


COLLECTIVES = ["all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter",
               "reduce_scatter_tensor", "all_to_all_single", "barrier"]


def same(ours, theirs):
    return len(ours) == len(theirs) and all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(ours, theirs))


def random_sequence(seed, length):
    """A random sequence, several under way at once: which operations differ from gloo's."""
    differing, open_work = [], []
    rng = random.Random(seed)
    for site in range(length):
        name, state = rng.choice(COLLECTIVES), rng.getstate()
        ours, work = one_of_each(None, name, rng, site)
        rng.setstate(state)
        theirs, oracle = one_of_each(gloo(), name, rng, site)
        open_work.append((name, site, ours, theirs, work, oracle))
        if rng.random() < 0.4 or site == length - 1:
            for name, site, ours, theirs, work, oracle in open_work:
                work.wait()
                oracle.wait()
                if not same(ours, theirs):
                    differing.append((name, site))
            open_work = []
    return differing


def every_type_and_op():
    rank, size = distributed.get_rank(), distributed.get_world_size()
    differing = []
    for dtype in MOVED:
        for name in ops_of(dtype, size):
            for count in (5, 5000):
                ours = values(rank, count, count, dtype)
                theirs = ours.clone()
                distributed.all_reduce(ours, OPS[name])
                distributed.all_reduce(theirs, OPS[name], group=gloo())
                if not same([ours], [theirs]):
                    differing.append((str(dtype), name, count))
    return differing
