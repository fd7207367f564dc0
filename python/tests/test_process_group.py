"""shoal.init_process_group() where no torchrun has prepared anything."""

import socket
import subprocess
import sys

import pytest

from pool import environment, launch

SUM = """
import os, torch, shoal
from torch import distributed
before = os.environ.get("SHOAL_SECRET")
shoal.init_process_group()
shoal.init_process_group()
there = torch.tensor([2.0 ** distributed.get_rank()])
distributed.all_reduce(there)
assert os.environ["SHOAL_SECRET"] != before, "not the session's, which the launcher may carry by itself"
said = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")}
print("SAID", there.item(), distributed.get_backend(), *said.values(), os.environ["MASTER_PORT"], flush=True)
distributed.destroy_process_group()
distributed.init_process_group("gloo")  # as libraries do: by the variables
distributed.barrier()
try:
    shoal.init_process_group()
except shoal.Error as refused:
    print("REFUSED", refused, flush=True)
"""


def said(output):
    return sorted(line.split("SAID ")[1].split() for line in output.splitlines() if "SAID" in line)


def test_alone():
    ended = subprocess.run([sys.executable, "-c", SUM], capture_output=True, text=True, timeout=100, env=environment())
    assert ended.returncode == 0, ended.stderr
    ((*figures, _),) = said(ended.stdout)
    assert figures == ["1.0", "shoal", "0", "1", "0", "1"]
    assert "REFUSED shoal.init_process_group: there is a default process group on gloo already (call it first, or " in ended.stdout


def free_ports(count):
    """The first of so many in a row that nobody listens at."""
    for first in range(21000, 60000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("", port))
            return first
        except OSError:
            continue


@pytest.mark.parametrize("ports", [8, 3])
def test_two_members_and_their_store_keep_to_the_ports_they_were_given(ports):
    # The coordinator listens at one, each member at one for its session and one for the group, rank 0 at one more for the store.
    first = free_ports(ports)
    process = launch(2, [sys.executable, "-c", SUM], {"SHOAL_PORT_RANGE": f"{first}-{first + ports - 1}"}, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    output, err = process.communicate(timeout=100)
    if ports == 3:
        assert process.returncode == 2 and "SHOAL_PORT_RANGE: no port of it is left for the store" in err, err
        return
    assert process.returncode == 0, err
    lines = said(output)
    assert [line[:-1] for line in lines] == [["3.0", "shoal", rank, "2", rank, "2"] for rank in "01"]
    assert all(first <= int(line[-1]) < first + ports for line in lines)
