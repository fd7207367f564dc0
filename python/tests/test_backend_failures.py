"""When members fail, differ or stay away: one line that names who and what, on everybody, in time."""

import datetime
import os
import signal
import time

import pytest
import torch
from torch import distributed

import shoal
from members import Members

SIZE = 3


@pytest.fixture
def start():
    groups = []

    def make(size=SIZE, **settings):
        groups.append(Members(size, **settings))
        return groups[-1]

    yield make
    for group in groups:
        group.close()


def line_of(fn, *arguments):
    """Class and text of what a call raises."""
    try:
        fn(*arguments)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def backend():
    return distributed.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))


def missing_collective():
    if distributed.get_rank() == 1:
        time.sleep(1.5)  # stays away until the others' deadline has passed
        return None
    return line_of(lambda: distributed.all_reduce(torch.ones(10)))


def test_a_deadline_names_the_operation_and_who_is_missing(start):
    for kind, line in [answer for answer in start(timeout=1.0).run(missing_collective) if answer]:
        assert kind == "DistBackendError"
        assert line == "operation 1, all_reduce of 10 f32 (sum): not done within 1 s: rank 1 has not entered it"


def missing_message():
    if distributed.get_rank() == 0:
        return line_of(lambda: distributed.recv(torch.empty(3), 2, tag=5))
    if distributed.get_rank() == 1:
        return line_of(lambda: distributed.send(torch.empty(5_000_000), 2, tag=4))
    time.sleep(1.5)
    return None


def test_a_message_that_does_not_come_or_is_not_taken(start):
    receiver, sender, _ = start(timeout=1.0).run(missing_message)
    assert receiver == ("DistBackendError", "recv from rank 2 (tag 5): rank 2 has not sent such a message within 1 s")
    assert sender == ("DistBackendError", "send to rank 2 (tag 4): rank 2 has not taken the message within 1 s")


def short_wait():
    if distributed.get_rank() == 0:
        time.sleep(0.5)
    work = distributed.all_reduce(torch.ones(4), async_op=True)
    early = line_of(lambda: work.wait(datetime.timedelta(milliseconds=50)))
    work.wait()
    return early


def test_wait_honours_its_own_timeout_and_the_operation_goes_on(start):
    _, first, second = start().run(short_wait)
    for kind, line in (first, second):
        assert kind == "DistBackendError" and line.startswith("all_reduce: not done within 50")


def message_of_other_size():
    if distributed.get_rank() == 0:
        return line_of(lambda: distributed.recv(torch.empty(3), 1))
    if distributed.get_rank() == 1:
        return line_of(lambda: distributed.isend(torch.empty(5_000_000), 0).wait())
    return None


def test_a_message_of_another_size(start):
    receiver, sender, _ = start().run(message_of_other_size)
    assert receiver[1] == "recv from rank 1 (tag 0): rank 1 sent 20000000 bytes and this member receives 12"
    assert sender[1] == "send to rank 0 (tag 0): the message has 20000000 bytes and rank 0 receives 12"


def different_calls(how):
    rank = distributed.get_rank()
    if how == "size":
        return line_of(lambda: distributed.all_reduce(torch.ones(100 if rank == 0 else 50)))
    if how == "type":
        return line_of(lambda: distributed.all_reduce(torch.ones(64, dtype=torch.float64 if rank == 1 else torch.int32)))
    return line_of(lambda: distributed.broadcast(torch.ones(8), 0) if rank == 2 else distributed.all_reduce(torch.ones(8)))


@pytest.mark.parametrize("how, line", [  # whichever pair finds it first, this member is of it
    ("size", "rank 0 calls all_reduce of 100 f32 (sum)"),
    ("type", "rank 1 calls all_reduce of 64 f64 (sum)"),
    ("call", "rank 2 calls broadcast of 32 u8, root 0"),
])
def test_with_checks_on_members_that_differ_are_named_before_a_byte_moves(start, how, line):
    answers = start(environment={"SHOAL_CHECK": "1"}).run(different_calls, how)
    assert all(answer and answer[0] == "DistBackendError" for answer in answers)
    assert all(line in text for _, text in answers), answers


def different_then_wait():
    rank = distributed.get_rank()
    first = line_of(lambda: distributed.all_reduce(torch.ones(1_000_000 if rank == 0 else 300_000)))
    return first or line_of(lambda: distributed.barrier())


def test_without_checks_members_that_hang_compare_notes(start):
    for kind, line in start(timeout=20.0).run(different_then_wait):
        assert kind == "DistBackendError" and " calls all_reduce of " in line


def monitored():
    if distributed.get_rank() != 0:
        time.sleep(1.0)
        return None
    options = [line_of(lambda: backend().monitored_barrier(datetime.timedelta(seconds=0.2), every)) for every in (True, False)]
    return options


def test_a_monitored_barrier_names_who_is_missing(start):
    everybody, first = start().run(monitored)[0]
    assert everybody[1] == "monitored_barrier: ranks 1, 2 have not come within 200 ms"
    assert first[1] == "monitored_barrier: rank 1 has not come within 200 ms"


def monitored_together():
    return line_of(lambda: backend().monitored_barrier(datetime.timedelta(seconds=20), True))


def test_a_monitored_barrier_lets_everybody_go(start):
    assert start().run(monitored_together) == [None] * SIZE


def wait_for_the_dead(how):
    """All survivors wait for rank 1; what they see, and when (the machine's clock)."""
    if distributed.get_rank() == 1:
        if how == "beside a data loader" and os.fork() == 0:
            time.sleep(5)  # a forked child that outlives its parent must not hold its connections open
            os._exit(0)
        os.kill(os.getpid(), 9)
    if how == "in a message":
        found = line_of(lambda: distributed.recv(torch.empty(4), 1))
    else:
        found = line_of(lambda: distributed.all_reduce(torch.ones(300_000)))
    return found, time.monotonic()


@pytest.mark.parametrize("how", ["in a collective", "in a message", "beside a data loader"])
def test_survivors_of_a_killed_member_learn_it_at_once(start, how):
    members = start()
    members.run(monitored_together)
    began = time.monotonic()
    members.start(wait_for_the_dead, how)
    for (kind, line), when in members.results(ranks=[0, 2]):
        assert kind == "PeerLost" and line.startswith("rank 1 (") and "was lost" in line
        assert when - began < 2.0  # 0.5 s on an idle machine; the deadline of silence alone would be 5 s
    assert issubclass(shoal.PeerLost, distributed.DistBackendError)


def send_to_the_stopped():
    if distributed.get_rank() == 1:
        distributed.irecv(torch.empty(8_000_000), 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        return None
    call = (lambda: distributed.send(torch.ones(8_000_000), 1)) if distributed.get_rank() == 0 else (lambda: distributed.recv(torch.empty(4), 1))
    return line_of(call), time.monotonic()


def test_a_stopped_member_is_lost_to_who_is_blocked_in_a_large_send(start):
    members = start()
    members.run(monitored_together)
    began = time.monotonic()
    members.start(send_to_the_stopped)
    answers = members.results(ranks=[0, 2])
    members.kill(1)
    for (kind, line), when in answers:
        assert kind == "PeerLost" and line.startswith("rank 1 (") and "was lost: not heard for " in line
        assert when - began < 8  # promised; silence is a loss after 5 s


def backward_of_the_dead():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    if distributed.get_rank() == 1:
        os.kill(os.getpid(), 9)
    return line_of(lambda: [model(torch.ones(2, 4)).sum().backward() for _ in range(2)])


def test_inside_autograd_the_loss_is_shoals_too(start):
    members = start()
    members.start(backward_of_the_dead)
    assert [kind for kind, _ in members.results(ranks=[0, 2])] == ["PeerLost", "PeerLost"]


def aborted():
    if distributed.get_rank() == 2:
        work = distributed.all_reduce(torch.ones(4), async_op=True)
        backend().abort()
        return line_of(work.wait)
    return line_of(lambda: distributed.all_reduce(torch.ones(300_000)))


def test_abort_wakes_every_waiter(start):
    for kind, line in start().run(aborted):
        assert kind in ("DistBackendError", "PeerLost") and "rank 2 aborted the process group" in line


def destroyed():
    work = distributed.isend(torch.ones(2_000_000), (distributed.get_rank() + 1) % SIZE)  # nobody receives it
    group = distributed.distributed_c10d._get_default_group()
    group._get_backend(torch.device("cpu")).shutdown()
    return line_of(work.wait), line_of(lambda: distributed.barrier())


def test_after_shutdown_everything_says_so(start):
    for waiting, later in start().run(destroyed):
        assert waiting[0] in ("DistBackendError", "PeerLost")
        assert later == ("DistBackendError", "the process group was destroyed")
