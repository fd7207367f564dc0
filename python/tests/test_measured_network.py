"""Four hosts, one of them slow, and nobody says so: training and the c10d backend each find it by themselves, and go by trees in which the slow host
is a leaf. A leaf sends a vector once, a member of a ring 3/2 of it.

Each host is a network namespace of a lab. Oracle: whole numbers, whose sums are exact in any order; and the bytes that leave the slow host.
"""

import json
import subprocess

import pytest
import torch
from torch import distributed

import labs
import shoal
import tiny  # noqa: F401  on the members' path
from test_shared_hosts import BYTES, MEASURED, SIDE, Weight, sent, whole

RATES = {"a": "100mbit", "b": "100mbit", "c": "100mbit", "d": "20mbit"}
MEMBERS = len(RATES)
SLOW = MEMBERS - 1
STEPS, MORE = 7, 4


def leave_at(rate):
    """Of this host's link."""
    subprocess.run(["tc", "qdisc", "replace", "dev", "c0", "root", "tbf", "rate", rate, "burst", "64kb", "limit", "256kb"], check=True)


def trained():
    """The weight, its plan before and after the slow host's link has become quicker one way, and the bytes of a step that left this host before."""
    net = Weight()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.25))
    before = 0
    for step in range(STEPS + MORE):
        if step == MEASURED:
            before = sent()
        if step == STEPS:
            left, plan = (sent() - before) / (STEPS - MEASURED), json.loads(net.plan)
            if shoal.rank() == SLOW:
                leave_at("80mbit")
            net.fit_plan()
        optimizer.zero_grad()
        net(whole(step, shoal.rank())).backward()
        optimizer.step()
    if shoal.rank() == SLOW:
        leave_at(RATES["d"])
    return net.module.weight.detach().clone(), plan, left, json.loads(net.plan)


def summed(group=None):
    values = whole(0, distributed.get_rank())
    before = sent()
    distributed.all_reduce(values, group=group)
    return values, sent() - before


def member(folder):
    torch.set_num_threads(1)
    shoal.init()
    results = {"training": trained()}
    shoal.init_process_group()
    results["backend"] = summed()
    parts = distributed.new_group(list(range(MEMBERS)))  # by what the first group found
    results["group"] = summed(parts)
    torch.save(results, f"{folder}/{shoal.rank()}")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    (folder / "rates").write_text("".join(f"{host} {rate}\n" for host, rate in RATES.items()))
    with labs.up("measured", "--rates", str(folder / "rates")) as lab:
        said = labs.run_members(lab, MEMBERS, "test_measured_network", folder, SHOAL_PACKING="never")  # bytes are counted
    assert said.count("[0] shoal: hosts' links are unequal: measuring the network") == 2, said  # training, and the first group alone
    return [torch.load(folder / str(rank)) for rank in range(MEMBERS)]


def test_training_finds_the_slow_host_and_makes_it_a_leaf(results):
    expected = torch.zeros(SIDE, SIDE)
    for step in range(STEPS + MORE):
        expected -= 0.25 * sum(whole(step, rank) for rank in range(MEMBERS)) / MEMBERS
    plan = results[0]["training"][1]
    assert {unit["way"] for unit in plan["units"]} == {"trees"}
    rates = rates_of(plan)
    assert rates[SLOW] < 0.5 * min(rates[:SLOW])
    for weight, theirs, *_ in (result["training"] for result in results):
        torch.testing.assert_close(weight, expected)
        assert theirs == plan
        assert torch.equal(weight, results[0]["training"][0])
    assert BYTES <= results[SLOW]["training"][2] <= 1.15 * BYTES, results[SLOW]["training"][2] / BYTES


def rates_of(plan):
    """At which each host can send."""
    topology = plan["network"]["topology"]
    return [max(link["bw"] for link in topology["links"] if link["src"] == host) for host in topology["compute"]]


def test_when_links_change_the_network_is_measured_again_and_the_trees_stay(results):
    """The bits of the later steps are above: they are those of the same trees."""
    _, before, _, after = results[0]["training"]
    assert rates_of(after)[SLOW] > 2 * rates_of(before)[SLOW]
    assert after["network"]["programs"] == before["network"]["programs"]
    assert [unit["way"] for unit in after["units"]] == [unit["way"] for unit in before["units"]]
    assert all(result["training"][3] == after for result in results)


@pytest.mark.parametrize("group", ["backend", "group"])
def test_the_backend_finds_it_too_and_groups_of_its_members_go_by_what_it_found(results, group):
    expected = sum(whole(0, rank) for rank in range(MEMBERS))
    for values, _ in (result[group] for result in results):
        assert torch.equal(values, expected)
    assert BYTES <= results[SLOW][group][1] <= 1.15 * BYTES, results[SLOW][group][1] / BYTES
