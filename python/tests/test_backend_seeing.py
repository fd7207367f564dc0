"""What PyTorch's own tools show of Shoal's operations: the profiler, TORCH_DISTRIBUTED_DEBUG=DETAIL, the flight recorder."""

import datetime
import io
import os
import pickle
from contextlib import redirect_stdout
from types import SimpleNamespace

import pytest
import torch
from torch import distributed
from torch.distributed.flight_recorder.components.builder import build_db
from torch.distributed.flight_recorder.components.loader import read_dir

from members import Members, rank

SIZE = 3


@pytest.fixture
def start():
    groups = []

    def make(**settings):
        groups.append(Members(SIZE, **settings))
        return groups[-1]

    yield make
    for group in groups:
        group.close()


def one_of_each():
    ones = torch.ones(4)
    distributed.all_reduce(ones)
    distributed.broadcast(ones, 0)
    distributed.reduce(ones, 0)
    distributed.all_gather([torch.empty(4) for _ in range(SIZE)], ones)
    distributed.reduce_scatter_tensor(torch.empty(2), torch.ones(2 * SIZE))
    distributed.all_to_all_single(torch.empty(SIZE), torch.ones(SIZE))
    distributed.barrier()
    if rank() == 0:
        distributed.send(torch.ones(5), 1)
    if rank() == 1:
        distributed.recv(torch.ones(5), 0)


def profiled():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        one_of_each()
    return sorted((event.name, event.input_shapes) for event in profile.events() if event.name.startswith("shoal:"))


def test_the_profiler_shows_operations_with_their_sizes(start):
    collectives = [("shoal:all_gather", [[4]]), ("shoal:all_reduce", [[4]]), ("shoal:all_to_all", [[SIZE]]), ("shoal:barrier", []),
                   ("shoal:broadcast", [[4]]), ("shoal:reduce", [[4]]), ("shoal:reduce_scatter", [[2 * SIZE]])]
    messages = [[("shoal:send", [[5]])], [("shoal:recv", [[5]])], []]
    assert start().run(profiled) == [sorted(collectives + of_rank) for of_rank in messages]


def checked_in_detail():
    one_of_each()
    try:
        distributed.all_reduce(torch.ones(3 if rank() == 1 else 4))
    except RuntimeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("device", [{}, {"SHOAL_PRETEND_DEVICE": "1"}], ids=["host", "device"])
def test_detail_compares_calls_and_shapes(start, device):
    """ProcessGroupWrapper stands before the backend and compares over gloo, numbers of calls too, which a device's late copies do not change; we do so once more ourselves."""
    for line in start(environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL", **device}).run(checked_in_detail):
        assert "ALLREDUCE" in line and "TensorShape=[3]" in line and "TensorShape=[4]" in line


def ends_in_a_mismatch():
    one_of_each()
    group = distributed.new_group([0, 2], group_desc="the outer two")
    if rank() != 1:
        distributed.all_reduce(torch.ones(2), group=group)
    try:
        distributed.all_reduce(torch.ones(9 if rank() == 1 else 7))
    except distributed.DistBackendError as error:
        return str(error)
    return None


def test_the_flight_recorder_is_dumped_at_a_failure_and_pytorch_reads_it(start, tmp_path):
    environment = {"TORCH_FR_BUFFER_SIZE": "100", "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_")}
    lines = start(environment=environment).run(ends_in_a_mismatch)
    assert len(set(lines)) == 1 and "all_reduce of 9 f32 (sum)" in lines[0]
    assert sorted(os.listdir(tmp_path)) == [f"trace_{r}" for r in range(SIZE)]

    dump = pickle.loads((tmp_path / "trace_0").read_bytes())
    assert {name: group["ranks"] for name, group in dump["pg_config"].items() if group["desc"] in ("default_pg", "the outer two")} == {
        entry["process_group"][0]: "[0, 1, 2]" if entry["process_group"][1] == "default_pg" else "[0, 2]" for entry in dump["entries"]}
    states = [(entry["profiling_name"], entry["input_sizes"], entry["state"]) for entry in dump["entries"]]
    assert states[0] == ("gloo:all_reduce", [[4]], "completed")
    assert ("gloo:send 0->1", [[5]], "completed") in states
    assert states[-1] == ("gloo:all_reduce", [[7]], "started")
    frames = [frame["name"] for frame in dump["entries"][-1]["frames"]]
    assert "ends_in_a_mismatch" in frames

    details, version = read_dir(SimpleNamespace(trace_dir=str(tmp_path), prefix="trace_"))
    arguments = SimpleNamespace(just_print_entries=False, verbose=False, allow_incomplete_ranks=False, mismatch_cap=10,
                                print_stack_trace=False, transform_ft=False, group_world_size=None)
    with redirect_stdout(io.StringIO()):
        database = build_db(details, arguments, version)
    assert [call.collective_name for call in database.collectives if not call.pass_check]


def test_a_record_that_cannot_be_written_hides_no_failure(start):
    lines = start(environment={"TORCH_FR_BUFFER_SIZE": "100", "HOME": "/dev/null"}).run(ends_in_a_mismatch)
    assert len(set(lines)) == 1 and "all_reduce of 9 f32 (sum)" in lines[0]


def merged_of_the_last():
    """Of ranks 1 and 2, who are 0 and 1, in an order of PyTorch's, in the merged group."""
    alone = distributed.distributed_c10d._get_default_group().split_group([rank()], group_name=f"alone {rank()}")
    if rank() == 0:
        return None
    store = distributed.PrefixStore("last", distributed.distributed_c10d._get_default_store())
    last = alone.merge_remote_group(store, 2, datetime.timedelta(seconds=30), group_name="last")
    last.allreduce([torch.ones(1)]).wait()
    from shoal import _C

    return last.rank(), pickle.loads(_C.flight_record())["pg_config"]["last"]["ranks"]


def test_a_merged_group_is_recorded_with_its_ranks_in_the_job(start):
    nobody, *last = start(environment={"TORCH_FR_BUFFER_SIZE": "5"}).run(merged_of_the_last)
    order = sorted(range(2), key=lambda index: last[index][0])
    assert nobody is None and {ranks for _, ranks in last} == {str([index + 1 for index in order])}


def recorded(count):
    for _ in range(count):
        distributed.all_reduce(torch.ones(1))
    from shoal import _C

    entries = pickle.loads(_C.flight_record())["entries"]
    return [entry["collective_seq_id"] for entry in entries]


def test_it_keeps_as_many_as_asked_and_none_unasked(start):
    assert start(environment={"TORCH_FR_BUFFER_SIZE": "5"}).run(recorded, 12) == [list(range(8, 13))] * SIZE
    assert start().run(recorded, 3) == [[]] * SIZE
