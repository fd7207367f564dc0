"""Groups out of groups, operations coalesced into one, and callbacks that wait for other operations."""

import datetime
import gc
import signal
import threading
import weakref

import pytest
import torch
from torch import distributed

import shoal
from members import Members, of_module, rank

SIZE = 4


members = of_module(SIZE)


def default():
    return distributed.distributed_c10d._get_default_group()


def backend():
    return default()._get_backend(torch.device("cpu"))


def split():
    """Halves, these split again, and a part that not everybody is in."""
    half = default().split_group([1, 3] if rank() % 2 else [0, 2], group_name=f"half {rank() % 2}")
    sum_of_half = torch.tensor([10.0 ** rank()])
    half.allreduce([sum_of_half]).wait()
    one = half.split_group([half.rank()], group_name=f"alone {rank()}")
    alone = torch.tensor([float(rank())])
    one.allreduce([alone]).wait()
    other = default().split_group([0, 1], group_name="the first two")
    return half.rank(), sum_of_half.item(), alone.item(), other is None


def test_split(members):
    assert members.run(split) == [(0, 101.0, 0.0, False), (0, 1010.0, 1.0, False), (1, 101.0, 2.0, True), (1, 1010.0, 3.0, True)]


def split_off_strangers():
    with pytest.raises(RuntimeError, match="rank 9 is not in the group of 4 that is to be split"):
        default().split_group([0, 1, 9], group_name="with a stranger")


def test_a_split_names_members_of_the_group(members):
    members.run(split_off_strangers)


def merged():
    """Two groups that share no member become one; who is who PyTorch gives out by arrival."""
    half = default().split_group([0, 1] if rank() < 2 else [2, 3], group_name=f"part {rank() // 2}")
    store = distributed.PrefixStore("merged", default().get_group_store())
    whole = half.merge_remote_group(store, SIZE, datetime.timedelta(seconds=30), group_name="merged")
    tensor = torch.tensor([10.0 ** rank()])
    whole.allreduce([tensor]).wait()
    return whole.rank(), whole.size(), tensor.item()


def test_merge(members):
    results = members.run(merged)
    assert sorted(result[0] for result in results) == list(range(SIZE))
    assert [result[1:] for result in results] == [(SIZE, 1111.0)] * SIZE


def coalesced():
    gathered, own = torch.empty(SIZE * 2), torch.tensor([rank() + 1.0, -rank()])
    summed, told = torch.tensor([rank() + 1.0]), torch.tensor([rank()])
    with distributed._coalescing_manager(device=torch.device("cpu"), async_ops=True) as all_of_them:
        distributed.all_gather(list(gathered.chunk(SIZE)), own)
        distributed.broadcast(told, 2)
    all_of_them.wait()
    tensors = [torch.full((3,), float(rank())), torch.full((2,), 2.0 * rank())]
    with distributed._coalescing_manager(device=torch.device("cpu")):
        for tensor in tensors:
            distributed.all_reduce(tensor)
    default()._start_coalescing(torch.device("cpu"))
    default().allreduce([summed])
    future = default()._end_coalescing(torch.device("cpu")).get_future()
    return (gathered.tolist(), told.item(), [tensor.tolist() for tensor in tensors], [t.tolist() for t in future.wait()],
            backend().supports_splitting, backend().supports_shrinking)


def test_coalesced(members):
    gathered = [value for r in range(SIZE) for value in (r + 1.0, -float(r))]
    assert members.run(coalesced) == [(gathered, 2, [[6.0] * 3, [12.0] * 2], [[10.0]], True, True)] * SIZE


def left_by_an_exception():
    """A block without an end keeps no later block from being, and does not keep what it started."""
    cpu = torch.device("cpu")
    forgotten, counted = torch.ones(3), torch.ones(2)
    default()._start_coalescing(cpu)
    default().allreduce([forgotten]).wait()
    forgotten = weakref.ref(forgotten)
    default()._start_coalescing(cpu)
    default().allreduce([counted])
    result = default()._end_coalescing(cpu).get_future().wait()
    gc.collect()
    return [tensor.tolist() for tensor in result], forgotten() is None


def test_a_block_that_an_exception_left_is_forgotten(members):
    assert members.run(left_by_an_exception) == [([[float(SIZE)] * 2], True)] * SIZE


def another_threads_operation():
    cpu, others = torch.device("cpu"), torch.ones(1)
    default()._start_coalescing(cpu)
    other = threading.Thread(target=lambda: default().allreduce([others]).wait())
    other.start()
    other.join()
    return len(default()._end_coalescing(cpu).result()), others.item()


def test_a_block_is_of_one_thread(members):
    assert members.run(another_threads_operation) == [(0, float(SIZE))] * SIZE


def many_callbacks_that_wait(bound):
    """More of them than threads, on rank 0: those above the bound run when others end."""
    go = torch.zeros(1)
    if rank() == 1:
        distributed.recv(go, 0)  # a callback that comes after the end of its operation would run in the thread that brings it
        for work in [distributed.isend(go, 0, tag=tag) for tag in range(bound + 20)]:
            work.wait()
    if rank() != 0:
        return None
    running, go_on = threading.Semaphore(0), threading.Event()

    def callback(future):
        running.release()
        go_on.wait()
        return future.value()

    futures = [distributed.irecv(torch.ones(1), 1, tag=tag).get_future().then(callback) for tag in range(bound + 20)]
    distributed.send(go, 1)
    enough = [running.acquire(timeout=30) for _ in range(bound)]
    one_more = running.acquire(timeout=0.2)
    go_on.set()
    return all(enough), one_more, {future.wait()[0].item() for future in futures}


def test_callbacks_take_a_bounded_number_of_threads(members):
    assert members.run(many_callbacks_that_wait, 256) == [(True, False, {0.0})] + [None] * (SIZE - 1)


def callbacks_that_wait():
    """As PowerSGD's: each waits for the future of an operation that it begins, here two deep."""
    def again(future):
        return distributed.all_reduce(future.value()[0].clone(), async_op=True).get_future()

    def deeper(future):
        return again(future).then(lambda done: again(done).wait()[0]).wait()

    return [distributed.all_reduce(torch.tensor([float(i)]), async_op=True).get_future().then(deeper).wait().item()
            for i in range(1, 4)]


def test_callbacks_that_wait_for_futures(members):
    assert members.run(callbacks_that_wait) == [[64.0, 128.0, 192.0]] * SIZE


def uneven_gather():
    """What NCCL calls all_gather_v."""
    outs = [torch.empty(r, 2) for r in range(SIZE)]
    distributed.all_gather(outs, torch.full((rank(), 2), float(rank())))
    return [out.tolist() for out in outs]


def test_all_gather_of_uneven_pieces(members):
    assert members.run(uneven_gather) == [[[[float(r)] * 2] * r for r in range(SIZE)]] * SIZE


def shrink_without(excluded, flags):
    """The others' group when a member is gone: ours has failed, the new one goes on."""
    try:
        distributed.all_reduce(torch.ones(1))
    except shoal.PeerLost as error:
        lost = str(error)
    group = distributed.shrink_group(excluded, shrink_flags=flags)
    tensor = torch.tensor([10.0 ** distributed.get_rank()])
    distributed.all_reduce(tensor)
    return "rank 1" in lost, distributed.get_rank(), group.size(), tensor.item()


@pytest.mark.parametrize("flags", [distributed.distributed_c10d.SHRINK_DEFAULT, distributed.distributed_c10d.SHRINK_ABORT])
def test_the_others_shrink_and_go_on(flags):
    group = Members(3)
    try:
        group.kill(1)
        group.processes[1].join()
        assert group.processes[1].exitcode == -signal.SIGKILL
        group.start(shrink_without, [1], flags, ranks=[0, 2])
        assert group.results(ranks=[0, 2]) == [(True, 0, 2, 11.0), (True, 1, 2, 11.0)]
    finally:
        group.close()


def ranks_of_two_groups():
    """Who is at which place of all, and of the last two."""
    places = []
    for group in (None, distributed.new_group([1, 2], backend="cpu:shoal")):
        if distributed.get_rank(group) >= 0:
            gathered = torch.empty(distributed.get_world_size(group), dtype=torch.int64)
            distributed.all_gather_into_tensor(gathered, torch.tensor([distributed.get_rank()]), group=group)
            places.append((distributed.get_rank(group), gathered.tolist()))
    return places


def test_ranks_are_those_of_the_group_whatever_torchruns_variables_say():
    group = Members(3, {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "7", "MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "1"})
    try:
        assert group.run(ranks_of_two_groups) == [[(0, [0, 1, 2])], [(1, [0, 1, 2]), (0, [1, 2])], [(2, [0, 1, 2]), (1, [1, 2])]]
    finally:
        group.close()
