"""Hosts with links between them, on which gradients travel packed: training has the bits that it has without, in fewer bytes on the wire.

Each host is a network namespace of a lab; between processes of one machine nothing is packed.
"""

import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import labs
import shoal
import tiny
from pool import environment
from shoal import session

MEMBERS, WIDTH = 3, 400
FULL, STEPS = 6, 18  # from the first on half of what the first layer is shown is zero: behind the choice of the plan, and before it settles
GRADIENTS = STEPS * 2 * (MEMBERS - 1) / MEMBERS * 2 * 4 * WIDTH * WIDTH  # bytes that a member sends


def member(folder):
    torch.set_num_threads(1)
    shoal.init()
    torch.manual_seed(1)
    net, optimizer = tiny.wrap(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)), plan="direct")  # in rank order, whatever lies in a unit
    for step in range(STEPS):
        x, y = tiny.data(step, shoal.rank(), width=WIDTH)
        if step == FULL:
            chosen = json.loads(net.plan)
        if step >= FULL:
            x[:, ::2] = 0
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    links = session.current().links()
    torch.save((tiny.values(net), (chosen, json.loads(net.plan)), links), f"{folder}/{shoal.rank()}")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """By what SHOAL_PACKING says: what each member has."""
    by = {}
    with labs.up("packed", "-n", str(MEMBERS), "--rate", "200mbit") as lab:
        for packing in ("auto", "never"):
            folder = tmp_path_factory.mktemp(packing)
            labs.run_members(lab, MEMBERS, "test_packed_links", folder, SHOAL_PACKING=packing)
            by[packing] = [torch.load(folder / str(rank)) for rank in range(MEMBERS)]
    return by


def test_bits_are_the_same_and_bytes_are_fewer(results):
    values = results["never"][0][0]
    assert all(tiny.equal(theirs, values) for member in results.values() for theirs, _, _ in member)
    for rank in range(MEMBERS):
        packed, plain = ({count: sum(link[count] for link in results[packing][rank][2]) for count in ("sent", "saved", "wire_sent")} for packing in ("auto", "never"))
        assert plain["saved"] == 0
        assert packed["saved"] > 0.1 * GRADIENTS  # beside them go probes, of noise
        beyond, beyond_plain = (link["wire_sent"] - link["sent"] for link in (packed, plain))  # headers, credit, heartbeats
        assert beyond < beyond_plain - packed["saved"] / 2


def shares(plans):
    return [{tensor["name"]: tensor.get("wire_share", 1) for tensor in plan["tensors"]} for plan in plans]


def test_a_plan_counts_on_what_packing_leaves_and_settles_on_what_it_leaves_by_then(results):
    assert {share for plan in shares(results["never"][0][1]) for share in plan.values()} == {1}
    chosen, settled = shares(results["auto"][0][1])
    assert chosen["0.weight"] < 0.9 and chosen["2.weight"] < 0.9
    assert settled["0.weight"] < 0.7 * chosen["0.weight"] and settled["2.weight"] > 0.7 * chosen["2.weight"]
    assert all(shares(plans) == [chosen, settled] for _, plans, _ in results["auto"])


def test_another_word_is_refused():
    ran = subprocess.run([sys.executable, "-c", "import shoal; shoal.init()"], env={**environment(), "SHOAL_PACKING": "yes"}, capture_output=True, text=True)
    assert ran.returncode != 0
    assert 'SHOAL_PACKING: "yes" is none of auto, always and never' in ran.stderr
