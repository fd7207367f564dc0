"""The backend's less usual forms: lists, coalesced calls, uneven splits, odd memory, objects, groups, futures, point to point."""

import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from backend_cases import same, values
from members import gloo, of_module, rank

SIZE = 3


members = of_module(SIZE)


def lists_and_coalesced():
    both = []
    for group in (None, gloo()):
        pg = group or distributed.distributed_c10d._get_default_group()
        results = []
        tensors = [values(rank(), site, 5 + site, torch.float32) for site in range(4)]
        pg.allreduce_coalesced(tensors, distributed.AllreduceCoalescedOptions()).wait()
        results += tensors
        owns = [values(rank(), 10 + site, 3 + site, torch.int64) for site in range(2)]
        outs = [[torch.empty_like(own) for own in owns] for _ in range(SIZE)]
        distributed.all_gather_coalesced(outs, owns, group=group)
        results += [tensor for of_one in outs for tensor in of_one]
        ins = [values(rank(), 20 + r, 40, torch.float64) for r in range(SIZE)]
        out = torch.empty(40, dtype=torch.float64)
        distributed.reduce_scatter(out, ins, group=group)
        results.append(out)
        outs = [torch.empty(4, dtype=torch.int32) for _ in range(SIZE)]
        distributed.all_to_all(outs, [values(rank(), 30 + r, 4, torch.int32) for r in range(SIZE)], group=group)
        results += outs
        both.append(results)
    return same(*both)


def test_lists_and_coalesced_calls_equal_gloo(members):
    assert members.run(lists_and_coalesced) == [True] * SIZE


def odd_memory():
    """gloo adds the memory between the elements where there are holes: it gets a contiguous copy."""
    both = []
    for group in (None, gloo()):
        own = (lambda tensor: tensor) if group is None else torch.Tensor.contiguous
        holes = own(values(rank(), 1, 24, torch.float32).view(4, 6)[:, ::2])
        distributed.all_reduce(holes, group=group)
        turned = own(values(rank(), 2, 12, torch.float32).view(3, 4).t())
        distributed.broadcast(turned, 1, group=group)
        outs = [own(torch.zeros(4, 4)[:, 1:3]) for _ in range(SIZE)]
        distributed.all_gather(outs, own(values(rank(), 3, 8, torch.float32).view(2, 4).t()), group=group)
        both.append([tensor.contiguous() for tensor in (holes, turned, *outs)])
    return same(*both)


def uneven_lists():
    """Lists of all sizes, none included, which gloo refuses."""
    outs = [torch.empty(r + 2 * rank(), dtype=torch.int32) for r in range(SIZE)]
    distributed.all_to_all(outs, [torch.full((rank() + 2 * r,), 10 * rank() + r, dtype=torch.int32) for r in range(SIZE)])
    kept = torch.empty(rank() + 1)
    distributed.reduce_scatter(kept, [torch.full((r + 1,), float(r)) for r in range(SIZE)])
    return [out.tolist() for out in outs], kept.tolist()


def test_lists_of_uneven_sizes(members):
    expected = [([[10 * r + rank] * (r + 2 * rank) for r in range(SIZE)], [3.0 * rank] * (rank + 1)) for rank in range(SIZE)]
    assert members.run(uneven_lists) == expected


def test_tensors_with_holes_and_turned_ones_equal_gloo(members):
    assert members.run(odd_memory) == [True] * SIZE


def only_ours():
    """What gloo refuses: types that only move, complex sums, premultiplied sums, averages of whole numbers."""
    short = torch.tensor([rank(), 300], dtype=torch.int16)
    distributed.broadcast(short, 2)
    twins = torch.tensor([complex(rank(), 1), complex(2, -rank())], dtype=torch.complex64)
    distributed.all_reduce(twins)
    scaled = torch.full((3,), float(rank()))
    distributed.all_reduce(scaled, distributed._make_nccl_premul_sum(0.5))
    mean = torch.tensor([rank(), 10 * rank()])
    distributed.all_reduce(mean, distributed.ReduceOp.AVG)
    return short.tolist(), twins.tolist(), scaled.tolist(), mean.tolist()


def overlapping():
    rank = distributed.get_rank()
    try:
        distributed.all_reduce(torch.ones(1).expand(5))
    except RuntimeError as error:
        said = str(error)
    there = torch.ones(2)
    distributed.all_reduce(there)  # the refused one has not begun anywhere
    return rank, said, there.tolist()


def test_elements_that_share_memory_are_refused_before_anything_moves(members):
    for rank, said, there in members.run(overlapping):
        assert "more than one element of the written-to tensor refers to a single memory location" in said and "frame #" not in said
        assert there == [members.size] * 2


def test_what_goes_beyond_gloo(members):
    assert members.run(only_ours) == [([2, 300], [complex(3, 3), complex(6, -3)], [1.5] * 3, [1, 10])] * SIZE


def sparse():
    index = torch.tensor([[0, rank() + 1], [rank(), 0]])
    own = torch.sparse_coo_tensor(index, torch.tensor([1.0, 2.0 + rank()]), (5, 4))
    distributed.all_reduce(own)
    return own.to_dense().tolist()


def test_sparse_tensors_are_added(members):
    expected = torch.zeros(5, 4)
    for r in range(SIZE):
        expected[0, r] += 1
        expected[r + 1, 0] += 2 + r
    assert members.run(sparse) == [expected.tolist()] * SIZE


def objects():
    everybodys = [None] * SIZE
    distributed.all_gather_object(everybodys, {"rank": rank(), "text": "x" * 3000 * rank()})
    given = [["from", rank()]]
    distributed.broadcast_object_list(given, 1)
    return [len(one["text"]) for one in everybodys], given


def test_objects(members):
    assert members.run(objects) == [([0, 3000, 6000], [["from", 1]])] * SIZE


def subgroup():
    group = distributed.new_group([0, 2], backend="shoal")  # ranks of its own: 0 and 1
    if rank() == 1:
        return None
    tensor = torch.tensor([rank() + 1.0])
    distributed.all_reduce(tensor, group=group)
    distributed.broadcast(token := torch.tensor([rank()]), 2, group=group)
    result = tensor.item(), token.item(), distributed.get_rank(group)
    distributed.destroy_process_group(group)
    return result


def test_a_subgroup_has_its_own_ranks(members):
    assert members.run(subgroup) == [(4.0, 2, 0), None, (4.0, 2, 1)]


def sequence_numbers():
    backend = distributed.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    first = backend._get_sequence_number_for_group()
    distributed.barrier()
    return backend._get_sequence_number_for_group() - first


def test_sequence_numbers_count_collectives(members):
    assert members.run(sequence_numbers) == [1] * SIZE


def futures():
    work = distributed.all_reduce(torch.tensor([rank() + 1.0]), async_op=True)
    chained = work.get_future().then(lambda future: future.value()[0].item())
    return chained.wait(), work.is_completed(), work.is_success()


def test_futures_carry_the_result(members):
    assert members.run(futures) == [(6.0, True, True)] * SIZE


def holds_alone():
    """Rank 0 begins when the others have dropped what they gave, and have laid other numbers where it may have been."""
    count = 100_000  # so many that memory which is freed is no longer this process's
    if rank() == 0:
        for other in (1, 2):
            distributed.recv(torch.empty(1), other)
    out = torch.empty(count)
    scattered = distributed.reduce_scatter_tensor(out, torch.full((SIZE * count,), rank() + 1.0), async_op=True)
    summed = distributed.all_reduce(torch.full((count,), 10.0 ** rank()), async_op=True).get_future()
    others = [torch.full((size,), -1.0) for size in (count, SIZE * count)]
    if rank() != 0:
        distributed.send(torch.ones(1), 0)
    scattered.wait()
    return out.unique().tolist(), summed.wait()[0].unique().tolist(), len(others)


def test_what_an_operation_reads_and_writes_is_there_until_it_ends(members):
    assert members.run(holds_alone) == [([6.0], [111.0], 2)] * SIZE


def callback_uses_the_group():
    """A callback may itself wait for a collective: it does not run on the loop that would have to do it."""
    work = distributed.all_reduce(torch.tensor([1.0]), async_op=True)

    def again(future):
        tensor = future.value()[0]
        distributed.all_reduce(tensor)
        return tensor.item()

    return work.get_future().then(again).wait()


def test_a_callback_may_wait_for_another_collective(members):
    assert members.run(callback_uses_the_group) == [9.0] * SIZE


def tags_out_of_order():
    """Rank 0 sends, the others take the tags in reverse; big ones overtake and are overtaken."""
    big = 300_000
    if rank() == 0:
        works = [distributed.isend(torch.full((big if tag % 2 else 3,), float(tag + 100 * to)), to, tag=tag)
                 for to in (1, 2) for tag in range(6)]
        for work in works:
            work.wait()
        return True
    good = True
    for tag in reversed(range(6)):
        tensor = torch.empty(big if tag % 2 else 3)
        distributed.recv(tensor, 0, tag=tag)
        good = good and bool((tensor == tag + 100 * rank()).all())
    return good


def test_tags_out_of_order(members):
    assert members.run(tags_out_of_order) == [True] * SIZE


def cross():
    """Everybody sends more than any buffer holds to everybody before anybody receives."""
    others = [r for r in range(SIZE) if r != rank()]
    sends = [distributed.isend(torch.full((2_000_000,), float(10 * rank() + to)), to) for to in others]
    good = True
    for source in reversed(others):
        tensor = torch.empty(2_000_000)
        distributed.recv(tensor, source)
        good = good and bool((tensor == 10 * source + rank()).all())
    for work in sends:
        work.wait()
    return good


def test_crossing_messages_bigger_than_any_buffer(members):
    assert members.run(cross) == [True] * SIZE


def many_unmatched():
    """More messages than are sent ahead; the last is wanted first, then the others in the order of one tag."""
    count = 700
    if rank() == 1:
        works = [distributed.isend(torch.tensor([i]), 0, tag=7) for i in range(count)]
        works.append(distributed.isend(torch.tensor([-1]), 0, tag=8))
        for work in works:
            work.wait()
    if rank() == 0:
        tensor = torch.empty(1, dtype=torch.int64)
        taken = []
        distributed.recv(tensor, 1, tag=8)
        taken.append(tensor.item())
        for _ in range(count):
            distributed.recv(tensor, 1, tag=7)
            taken.append(tensor.item())
        return taken == [-1, *range(count)]
    return True


def test_many_unmatched_messages(members):
    assert members.run(many_unmatched) == [True] * SIZE


def from_anybody():
    if rank() != 0:
        distributed.send(torch.tensor([rank() * 5]), 0, tag=3)
        return None
    taken = []
    for _ in range(SIZE - 1):
        tensor = torch.empty(1, dtype=torch.int64)
        taken.append((distributed.recv(tensor, tag=3), tensor.item()))
    return sorted(taken)


def test_receive_from_anybody_says_who_it_was(members):
    assert members.run(from_anybody) == [[(1, 5), (2, 10)], None, None]


def batched():
    right, left = (rank() + 1) % SIZE, (rank() - 1) % SIZE
    tensor = torch.empty(4)
    operations = [distributed.P2POp(distributed.isend, torch.full((4,), float(rank())), right),
                  distributed.P2POp(distributed.irecv, tensor, left)]
    for work in distributed.batch_isend_irecv(operations):
        work.wait()
    return tensor.tolist() == [float(left)] * 4


def test_batches_of_messages(members):
    assert members.run(batched) == [True] * SIZE


def train(group):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 5))
    model = DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(rank())
    for _ in range(20):
        inputs, wanted = torch.randn(16, 20, generator=generator), torch.randint(0, 5, (16,), generator=generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), wanted).backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def distributed_data_parallel():
    ours, theirs = train(None), train(gloo())
    everybodys = [torch.empty_like(ours) for _ in range(SIZE)]
    distributed.all_gather(everybodys, ours)
    return float((ours - theirs).abs().max()) <= 1e-5, all(torch.equal(ours, one) for one in everybodys)


def test_unmodified_data_parallel_trains_as_on_gloo(members):
    assert members.run(distributed_data_parallel) == [(True, True)] * SIZE


def forked_child():
    """A child that is forked (as a data loader's worker is) neither communicates nor disturbs the group when it ends."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            distributed.all_reduce(torch.ones(1))
            answer = "it communicated"
        except Exception as error:
            answer = str(error)
        os.write(write, answer.encode())
        distributed.distributed_c10d._get_default_group()._get_backend(torch.device("cpu")).shutdown()
        os._exit(0)
    os.waitpid(child, 0)
    tensor = torch.ones(1)
    distributed.all_reduce(tensor)
    return os.read(read, 1000).decode().split(": ")[-1].split(" (")[0], tensor.item()


def test_a_forked_child_is_no_member(members):
    assert members.run(forked_child) == [("this process was forked from a member and is none itself", 3.0)] * SIZE
