"""The backend's operations on tensors of a device, whose copies come to the host late: what gloo gives on the CPU, bit for bit. Here the CPU pretends to be the
device (SHOAL_PRETEND_DEVICE); test_cuda.py has a real one.
"""

import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import backend_cases as cases
import test_backend_forms as forms
import tiny
from members import Members, gloo

SIZE = forms.SIZE


@pytest.fixture(scope="module", params=["0", "1"], ids=["late", "later"])
def members(request):
    group = Members(SIZE, {"SHOAL_PRETEND_DEVICE": request.param})
    yield group
    group.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_sequences_equal_gloo(members, seed):
    assert members.run(cases.random_sequence, seed, 40) == [[]] * SIZE


def test_every_type_and_op_equals_gloo(members):
    assert members.run(cases.every_type_and_op) == [[]] * SIZE


def test_lists_and_coalesced_calls_equal_gloo(members):
    assert members.run(forms.lists_and_coalesced) == [True] * SIZE


def test_tensors_with_holes_and_turned_ones_equal_gloo(members):
    assert members.run(forms.odd_memory) == [True] * SIZE


def messages():
    """In both directions at once, several of one tag, which arrive in the order in which they were sent."""
    rank = distributed.get_rank()
    after, before = (rank + 1) % SIZE, (rank - 1) % SIZE
    works = [distributed.isend(torch.full((1000,), float(10 * rank + i)), after) for i in range(4)]
    taken = [torch.empty(1000) for _ in range(4)]
    for tensor in taken:
        distributed.recv(tensor, before)
    for work in works:
        work.wait()
    return [tensor.unique().tolist() for tensor in taken]


def test_messages_arrive_in_order(members):
    assert members.run(messages) == [[[float(10 * ((rank - 1) % SIZE) + i)] for i in range(4)] for rank in range(SIZE)]


def sparse():
    own = torch.sparse_coo_tensor([[distributed.get_rank(), 5]], torch.tensor([1.0, 2.0]), (8,))
    distributed.all_reduce(own)
    return own.to_dense().tolist()


def test_sparse_tensors(members):
    assert members.run(sparse) == [[1.0, 1.0, 1.0, 0.0, 0.0, 6.0, 0.0, 0.0]] * SIZE


def trained(buckets):
    """By DistributedDataParallel, on our group and on gloo's."""
    ends = []
    for group in (None, gloo()):
        net = DistributedDataParallel(tiny.model(), process_group=group, bucket_cap_mb=buckets)
        optimizer = tiny.sgd(net)
        for step in range(5):
            tiny.step(net, optimizer, step, distributed.get_rank())
        ends.append(tiny.values(net.module))
    return all(torch.allclose(a, b, rtol=1e-6, atol=1e-7) for a, b in zip(*ends))


@pytest.mark.parametrize("buckets", [0.0001, 25])
def test_distributed_data_parallel(members, buckets):
    assert members.run(trained, buckets) == [True] * SIZE


def refused():
    """An operation that cannot begin, behind one whose copy is under way: an error for its caller, and the group has ended."""
    first = torch.ones(1000)
    works = [distributed.all_reduce(first, async_op=True)]
    outcomes = []
    if distributed.get_rank() == 0:
        distributed.distributed_c10d._get_default_group()._get_backend(torch.device("cpu")).abort()
    try:
        works.append(distributed.all_reduce(torch.ones(10), async_op=True))
        for work in works:
            work.wait()
    except RuntimeError as error:
        outcomes.append(str(error).splitlines()[0])
    return outcomes


def test_operations_that_begin_late_hear_that_the_group_has_ended():
    group = Members(2, {"SHOAL_PRETEND_DEVICE": "1"})
    results = group.run(refused)
    group.close()
    for (outcome,) in results:
        assert "aborted" in outcome or "closed" in outcome or "lost" in outcome
