"""Scenarios and plans foreseen, from Python: just what `shoal sim --json` and `shoal plan --json` print, and a real run's saved plan simulated."""

import json
import subprocess

import pytest
import torch
from torch import nn

import shoal
import tiny
from pool import program as pool_program

RING = {"name": "ring", "program": "ring", "bytes": "64MB"}
LINKS_ONLY = {"model": "links_only"}


def printed(*command) -> dict:
    return json.loads(subprocess.run([pool_program(), *map(str, command), "--json"], check=True, capture_output=True, text=True).stdout)


@pytest.fixture
def network():
    return shoal.Network("star 4", rate="1gbit", latency="50us")


def test_file_text_and_dict_are_one_scenario_and_say_what_the_program_prints(network, tmp_path):
    network.save(tmp_path / "net.json")
    text = '''shoal_sim = 1
name = "both"
[topology]
file = "net.json"
[[run]]
name = "ring"
program = "ring"
bytes = "64MB"
repeats = 2
[[flow]]
from = "0"
to = "1"
bytes = "1MB"
'''
    (tmp_path / "s.toml").write_text(text)
    by_file = shoal.simulate(tmp_path / "s.toml")
    assert by_file == printed("sim", tmp_path / "s.toml")
    said = {"shoal_sim": 1, "name": "both", "topology": {"file": network}, "run": [RING | {"repeats": 2}],
            "flow": [{"from": "0", "to": "1", "bytes": "1MB"}]}
    assert shoal.simulate(said) == by_file
    assert shoal.simulate(text.replace('"net.json"', json.dumps(str(tmp_path / "net.json")))) == by_file


def test_a_ring_takes_its_closed_form_and_a_compiled_program_its_own_price(network):
    ring = shoal.simulate({"shoal_sim": 1, "topology": {"file": network}, "costs": LINKS_ONLY, "run": [RING]})
    assert ring["seconds"] == pytest.approx(1.5 * 64e6 / 125e6 + 6 * 100e-6, rel=0.005)  # a path is two links
    assert [link["bytes"] for link in ring["links"]] == pytest.approx([1.5 * 64e6] * 8)
    program = shoal.program.build(network)
    run = {"name": "best", "program": program, "bytes": "64MB"}
    assert shoal.simulate({"shoal_sim": 1, "topology": {"file": network}, "run": [run]})["seconds"] == pytest.approx(program.price(network, 64e6)["seconds"])


def trained(way):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(6, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 3))
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1), plan=f"ring,2.weight={way}")
    for number in range(6):  # the first ones are measured
        tiny.step(net, optimizer, number, shoal.rank())
    return net.plan


@pytest.mark.parametrize("way, sent", [("ring", 1.5), ("owners", 1.5), ("topk:0.01", 0.06), ("int8", 0.375 * (1 + 4 / 512))])
def test_the_plan_that_a_run_has_saved_is_simulated_with_the_bytes_of_its_ways(pool, tmp_path, network, way, sent):
    plan = json.loads(pool(4).run(trained, way)[0])
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    said = {"shoal_sim": 1, "topology": {"file": network}, "costs": LINKS_ONLY, "plan": [{"name": "p", "file": tmp_path / "plan.json"}]}
    simulated = shoal.simulate(said)
    assert shoal.simulate(said | {"plan": [{"name": "p", "file": plan}]}) == simulated
    assert {unit["way"] for unit in plan["units"]} == {way, "ring"}
    wide, rest = 4 * 200 * 200, 4 * (200 * 6 + 200 + 200 + 3 * 200 + 3)
    for link in simulated["links"]:  # parts of 40,000 elements are whole blocks of 64 or 512
        assert link["bytes"] == pytest.approx(sent * wide + 1.5 * rest, abs=4 * 4 * 512)
    assert simulated["seconds"] >= plan["forward_seconds"] + simulated["links"][0]["bytes"] / 125e6


def test_a_forecast_is_what_the_program_prints(network, tmp_path):
    network.save(tmp_path / "net.json")
    (tmp_path / "lenet.json").write_text(json.dumps({"version": 1, "name": "one", "layers": [
        {"name": "fc", "kind": "fc", "forward_flops": 2e6, "inputs": 1000, "outputs": 1000, "rows": 1, "parameters": [{"name": "fc.weight", "count": 1000000, "type": "f32"}]}]}))
    for model in ("lenet", tmp_path / "lenet.json"):
        told = shoal.plan(model, network, gflops=50, batch=16)
        assert told == printed("plan", model, "--topology", tmp_path / "net.json", "--gflops", 50, "--batch", 16)
    assert told["members"] == 4 and told["plan"]["units"]
    assert shoal.plan(json.loads((tmp_path / "lenet.json").read_text()), network, gflops=50, batch=16) == told
    with torch.device("meta"):
        module, sample = nn.Sequential(nn.Linear(64, 32)), (torch.empty(1, 64),)
    assert shoal.plan(module, network, "ring", gflops=50, sample=sample)["parameters"] == 64 * 32 + 32


def test_a_plan_of_a_topology_is_simulated_as_it_is_foreseen(network):
    told = shoal.plan("fcnet" if "fcnet" in shoal.models.MODELS else shoal.models.MODELS[0], network, "ring", gflops=50, alpha="0us", add_rate="1000000GB/s")
    simulated = shoal.simulate({"shoal_sim": 1, "topology": {"file": network}, "costs": LINKS_ONLY, "plan": [{"name": "p", "file": told["plan"]}]})
    # The steps of its units add no more than a path's latency each.
    assert simulated["seconds"] == pytest.approx(told["seconds"], rel=0.02)


@pytest.mark.parametrize("scenario, line", [
    ({"shoal_sim": 2, "topology": {}}, "scenario: shoal_sim"),
    ({"shoal_sim": 1, "topology": {"form": "star", "size": [4], "rate": "1gbit"}, "run": [RING | {"speed": 3}]}, r"scenario: run\[0\].speed: is no key here"),
    ({"shoal_sim": 1, "name": None}, "name: a NoneType is nothing that a scenario has"),
    ("no_such.toml", "no_such.toml: cannot be read: No such file"),
    ("shoal_sim = 1\n[topology]\nfile = 'no.json'\n", "no.json: cannot be read"),
], ids=["version", "key", "type", "file", "named file"])
def test_what_is_wrong_is_one_line(scenario, line):
    with pytest.raises(shoal.Error, match=line) as error:
        shoal.simulate(scenario)
    assert "\n" not in str(error.value)


def test_what_is_wrong_with_a_forecast_is_one_line(network, tmp_path):
    for options, line in (({"gflops": 0}, "gflops: 0 is not from"), ({"gflops": 1, "overlap": 2}, "overlap: 2 is not from 0 to 1"),
                          ({"gflops": 1, "choice": "pigeon"}, '"pigeon" is no plan'), ({"gflops": 1, "choice": "a/plan.json"}, "a saved plan is replayed as it is")):
        with pytest.raises(shoal.Error, match=line):
            shoal.plan("lenet", network, **options)
    with pytest.raises(shoal.Error, match="sample: a module is described by a forward pass"):
        shoal.plan(nn.Linear(2, 2), network, gflops=1)
    with pytest.raises(shoal.Error, match="65 hosts; plans are foreseen link by link for up to 64"):
        shoal.plan("lenet", shoal.Network("star 65", rate="1gbit"), gflops=1)
