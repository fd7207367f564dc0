"""A network that is said: trees made for it carry the gradients and the collectives, with the same results as ever."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import distributed, nn

import members as groups
import shoal
import tiny
from pool import Pool

HOSTS = 3


def topology(folder, dangling=0):
    """One slow host of three; `dangling` switches that lead nowhere make it long."""
    chain = ["s", *(f"t{k}" for k in range(dangling))]
    links = [link for host, rate in zip("abc", (500, 500, 50)) for link in ({"src": host, "dst": "s", "bw": rate}, {"src": "s", "dst": host, "bw": rate})]
    links += [link for a, b in zip(chain, chain[1:]) for link in ({"src": a, "dst": b, "bw": 1}, {"src": b, "dst": a, "bw": 1})]
    file = folder / "slow.json"
    file.write_text(json.dumps({"name": "slow", "bandwidth_unit": "Mbit/s", "compute": list("abc"), "switches": chain, "links": links}))
    return str(file)


def trained(plan):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 3))
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1), plan)
    for step in range(6):
        optimizer.zero_grad()
        generator = torch.Generator().manual_seed(1000 * step + shoal.rank())
        x = torch.randn(16, 6, generator=generator)
        F.cross_entropy(net(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()
    return tiny.values(net.module), net.plan


@pytest.mark.parametrize("plan", ["trees", "auto"])
def test_gradients_go_by_the_trees_of_a_network_that_is_said(pool, tmp_path, monkeypatch, plan):
    monkeypatch.setenv("SHOAL_TOPOLOGY", topology(tmp_path))
    told = Pool(HOSTS)  # members read it when they first measure their links
    results = told.run(trained, plan)
    told.close()
    values, chosen = results[0]
    assert all(tiny.equal(theirs, values) and theirs_chosen == chosen for theirs, theirs_chosen in results)
    chosen = json.loads(chosen)
    if plan == "trees":
        assert {unit["way"] for unit in chosen["units"]} == {"trees"}
    assert chosen["network"]["topology"]["compute"] == ["a", "b", "c"]
    for ours, theirs in zip(values, pool(HOSTS).run(trained, "direct")[0][0]):
        torch.testing.assert_close(ours, theirs)


def summed(elements):
    rank = distributed.get_rank()
    both = torch.arange(elements, dtype=torch.float32) + rank
    distributed.all_reduce(both)
    parts = [torch.empty(elements) for _ in range(HOSTS)]
    distributed.all_gather(parts, torch.full((elements,), float(rank)))
    part = torch.empty(elements)
    distributed.reduce_scatter(part, [torch.full((elements,), float(rank + 10 * to)) for to in range(HOSTS)])
    return both, torch.stack(parts), part


@pytest.mark.parametrize("tune, dangling", [(None, 0), ("allreduce:@trees#allgather:@trees#reducescatter:@trees", 0), (None, 1000)])
def test_collectives_are_right_on_a_network_that_is_said(tmp_path, tune, dangling):
    group = groups.Members(HOSTS, {"SHOAL_TOPOLOGY": topology(tmp_path, dangling), **({"SHOAL_TUNE": tune} if tune else {})})
    try:
        for elements in (1, 7, 300_000):
            for rank, (both, parts, part) in enumerate(group.run(summed, elements)):
                assert torch.equal(both, HOSTS * torch.arange(elements, dtype=torch.float32) + sum(range(HOSTS)))
                assert torch.equal(parts, torch.arange(HOSTS, dtype=torch.float32)[:, None].expand(HOSTS, elements))
                assert torch.equal(part, torch.full((elements,), float(sum(range(HOSTS)) + 10 * rank * HOSTS)))
    finally:
        group.close()


CHIPS = 4


def circle(folder):
    """Four chips, each linked with two: a torus of one dimension, in which half of the data goes each way round."""
    links = [{"src": str(a), "dst": str(b), "bw": 20} for here in range(CHIPS) for a, b in ((here, (here + 1) % CHIPS), ((here + 1) % CHIPS, here))]
    file = folder / "circle.json"
    file.write_text(json.dumps({"name": "circle", "bandwidth_unit": "Mbit/s", "compute": [str(k) for k in range(CHIPS)], "switches": [], "links": links}))
    return str(file)


def test_gradients_go_by_the_form_of_a_network_that_is_said(pool, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_TOPOLOGY", circle(tmp_path))
    told = Pool(CHIPS)
    results = told.run(trained, "torus"), told.run(trained, "auto")
    told.close()
    for by in results:
        values, chosen = by[0]
        assert all(tiny.equal(theirs, values) and theirs_chosen == chosen for theirs, theirs_chosen in by)
        for ours, theirs in zip(values, pool(CHIPS).run(trained, "direct")[0][0]):
            torch.testing.assert_close(ours, theirs)
    assert {unit["way"] for unit in json.loads(results[0][0][1])["units"]} == {"torus"}


def added(elements):
    values = torch.arange(elements, dtype=torch.float32) + distributed.get_rank()
    distributed.all_reduce(values)
    return values


@pytest.mark.parametrize("tune", ["allreduce:@torus", "allreduce:@ordered_ring", "allreduce:@torus:0"])
def test_collectives_by_a_form_that_is_wished_are_right(tmp_path, tune):
    group = groups.Members(CHIPS, {"SHOAL_TOPOLOGY": circle(tmp_path), "SHOAL_TUNE": tune})
    try:
        for elements in (1, 300_000):
            for values in group.run(added, elements):
                assert torch.equal(values, CHIPS * torch.arange(elements, dtype=torch.float32) + sum(range(CHIPS)))
    finally:
        group.close()
