"""Two hosts with two members each, as machines with two devices: gradients are added inside of each host first and cross between the hosts once.

Each host is a network namespace of a lab, each member a process that trains on a device that the CPU pretends to be (SHOAL_PRETEND_DEVICE), the
second of a host on the second one. Oracle: one process; integers, whose sums are exact in any order, where bits count.
"""

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import distributed, nn

import labs
import shoal
import tiny
from pool import environment, program
from test_launchers import variables

HOSTS, MEMBERS = 2, 4
STEPS, MEASURED = 10, 4   # of the first, after which the plan is settled
SIDE = 512                # a gradient of 1 MiB
BYTES = 4 * SIDE * SIDE


class Weight(nn.Module):
    """No nn.Linear, so that the gradient itself travels."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(SIDE, SIDE))

    def forward(self, x):
        return (self.weight * x).sum()


def whole(step: int, rank: int):
    return torch.randint(-8, 9, (SIDE, SIDE), generator=torch.Generator().manual_seed(100 * step + rank)).float()


def sent() -> int:
    """Bytes that have left this host, all of whose members are here and go on together. Of the steps so far, all: a step returns before its gradients
    have come, and the last of them would be counted to what follows."""
    shoal.flush()
    here = shoal.session.current()
    here.gather("", "a test")
    with open("/proc/net/dev") as lines:
        count = int(next(line for line in lines if line.strip().startswith("c0:")).split(":")[1].split()[8])
    here.gather("", "a test")
    return count


def of_the_hierarchy(steps: int):
    """The values of a small model after each step, its plan's ways before it, and the plan."""
    net, optimizer = tiny.wrap(tiny.model(), plan="hierarchical")
    values, ways = [], []
    for step in range(steps):
        ways.append({unit["way"] for unit in json.loads(net.plan)["units"]})
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        values.append(tiny.values(net))
    return values, ways


def integers_by_what_is_quickest():
    """The weight, the ways of the plan, and the bytes of each step that left this host."""
    net = Weight()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.25))
    before = 0
    for step in range(STEPS):
        if step == MEASURED:
            before = sent()
        optimizer.zero_grad()
        net(whole(step, shoal.rank())).backward()
        optimizer.step()
    left = (sent() - before) / (STEPS - MEASURED)
    return net.module.weight.detach().clone(), {unit["way"] for unit in json.loads(net.plan)["units"]}, left


def summed_by_the_backend():
    shoal.init_process_group()
    values = whole(0, shoal.rank())
    before = sent()
    distributed.all_reduce(values)
    return values, sent() - before


def member(folder):
    torch.set_num_threads(1)
    shoal.init()
    results = {"plain": of_the_hierarchy(6)}
    os.environ["SHOAL_PRETEND_DEVICE"] = str(shoal.rank() % 2)
    results |= {"device": of_the_hierarchy(6), "integers": integers_by_what_is_quickest(), "backend": summed_by_the_backend()}
    torch.save(results, f"{folder}/{shoal.rank()}")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    with labs.up("shared", "-n", str(HOSTS), "--rate", "100mbit") as lab:
        started = []
        for rank in range(MEMBERS):
            given = variables(**{"JOB_COMPLETION_INDEX": str(rank), "SHOAL_SIZE": str(MEMBERS), "SHOAL_JOB": "train", "SHOAL_SECRET": "hush",
                                 "SHOAL_COORD": "10.77.0.1:29400", "SHOAL_PACKING": "never",  # bytes are counted
                                 "PYTHONPATH": environment()["PYTHONPATH"]})
            command = [sys.executable, "-c", f"import test_shared_hosts as t; t.member({str(folder)!r})"]
            started.append(subprocess.Popen([program(), "lab", "exec", lab, f"host{rank // 2}", "--", *command], env=given, cwd=folder,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        said = [process.communicate(timeout=120)[0] for process in started]
        assert [process.returncode for process in started] == [0] * MEMBERS, said
    return [torch.load(folder / str(rank)) for rank in range(MEMBERS)]


def test_a_model_ends_like_that_of_one_process(results):
    """But for rounding: who adds first differs from part to part."""
    net = tiny.model()
    optimizer = tiny.sgd(net)
    values, ways = results[0]["plain"]
    assert ways[-1] == {"hierarchical"}
    for step in range(len(ways)):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in range(MEMBERS)])
        for got, expected in zip(values[step], tiny.values(net), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6)


def test_members_on_two_devices_of_each_host_end_like_those_on_none(results):
    expected = results[0]["plain"][0]
    for result in results:
        for name in ("plain", "device"):
            assert all(tiny.equal(a, b) for a, b in zip(result[name][0], expected, strict=True)), name


def test_auto_adds_inside_of_hosts_first_and_a_host_sends_what_one_member_would(results):
    """One vector: half of it to be added, half of what was added. A ring of all four members would send 1.5, direct exchange 2."""
    expected = torch.zeros(SIDE, SIDE)
    for step in range(STEPS):
        expected -= 0.25 * sum(whole(step, rank) for rank in range(MEMBERS)) / MEMBERS
    for weight, ways, left in (result["integers"] for result in results):
        assert torch.equal(weight, expected)
        assert ways == {"hierarchical"}
        assert BYTES <= left <= 1.15 * BYTES, left / BYTES


def test_an_all_reduce_of_the_backend_crosses_once_too(results):
    expected = sum(whole(0, rank) for rank in range(MEMBERS))
    for values, left in (result["backend"] for result in results):
        assert torch.equal(values, expected)
        assert BYTES <= left <= 1.15 * BYTES, left / BYTES
