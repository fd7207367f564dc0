"""Programs made for networks, from Python: as `shoal program` makes and prices them."""

import json
import subprocess

import pytest

import shoal
from pool import program as pool_program

SLOW = {"name": "one slow host", "bandwidth_unit": "Mbit/s", "compute": ["a", "b", "c", "d"], "switches": ["s"],
        "links": [link for host, rate in zip("abcd", (500, 500, 500, 100))
                  for link in ({"src": host, "dst": "s", "bw": rate}, {"src": "s", "dst": host, "bw": rate})]}


@pytest.fixture
def network(tmp_path):
    (tmp_path / "slow.json").write_text(json.dumps(SLOW))
    return shoal.Network(tmp_path / "slow.json")


def test_a_program_reaches_the_bound_where_one_host_is_slow(network, tmp_path):
    program = shoal.program.build(network)
    proof = program.verify(network)
    assert proof["bound"] == pytest.approx(12.5e6) and proof["efficiency"] == pytest.approx(1) and proof["in_place"]
    price = program.price(network, bytes=64e6)
    ring = shoal.program.build(network, mode="ring").price(network, bytes=64e6)
    assert price["bottleneck"] in ("d > s", "s > d") and price["efficiency"] > 0.95
    assert ring["seconds"] > 1.4 * price["seconds"] and ring["bound_seconds"] == pytest.approx(price["bound_seconds"])
    program.save(tmp_path / "p.json")
    assert shoal.program.load(tmp_path / "p.json").json == program.json and "receive_reduce" in str(program)


def test_a_torus_is_known_by_its_file_and_other_forms_are_refused(network, tmp_path):
    names = [f"{x}_{y}" for x in range(4) for y in range(4)]
    links = [{"src": f"{x}_{y}", "dst": f"{(x + dx) % 4}_{(y + dy) % 4}", "bw": 1} for x in range(4) for y in range(4)
             for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    (tmp_path / "torus.json").write_text(json.dumps({"bandwidth_unit": "Gbit/s", "compute": names[::-1], "switches": [], "links": links}))
    torus = shoal.Network(tmp_path / "torus.json")
    program = shoal.program.build(torus, mode="torus")
    assert program.name == "torus" and program.verify(torus)["efficiency"] == pytest.approx(1)
    assert shoal.program.build(torus).name == "torus"  # nothing is quicker
    with pytest.raises(shoal.Error, match="is no grid: it has switches, as s"):
        shoal.program.build(network, mode="mesh-ring")


def test_a_network_is_a_file_a_dict_or_a_form(network, tmp_path):
    """What the command line generates, imports and draws."""

    def shoal_says(*command):
        return subprocess.run([pool_program(), *map(str, command)], check=True, capture_output=True, text=True).stdout

    assert shoal.Network(SLOW) == network and network.hosts == ["a", "b", "c", "d"]
    network.save(tmp_path / "again.json")
    assert shoal.Network(tmp_path / "again.json") == network
    torus = shoal.Network("torus 4x4", rate="1gbit", latency="5us", dead=["3,3"])
    assert json.loads(torus.json) == json.loads(shoal_says("topo", "generate", "torus", "4x4", "--rate", "1gbit", "--latency", "5us", "--dead", "3,3"))
    sites = shoal.Network("sites 2x4", rate="1gbit", uplink="200mbit", uplink_latency="10ms")
    sites.save(tmp_path / "sites.json")
    shoal_says("topo", "show", tmp_path / "sites.json", "--svg", tmp_path / "sites.svg")
    assert sites.svg() == (tmp_path / "sites.svg").read_text()
    assert shoal.Network("star", rates=["1gbit", "200mbit"]).hosts == ["0", "1"]


def test_a_network_is_inferred_from_rates(network):
    """A star with one slow host: every pair alone goes at the slower of its links, and flows that share a link share its rate."""
    rates = [62.5e6, 62.5e6, 62.5e6, 12.5e6]

    def together(flows):
        out, into = [0] * 4, [0] * 4
        for source, target in flows:
            out[source] += 1
            into[target] += 1
        return [min(rates[source] / out[source], rates[target] / into[target]) for source, target in flows]

    alone = [[min(a, b) for b in rates] for a in rates]
    found = json.loads(shoal.Network.infer("abcd", alone, [[1e-4] * 4] * 4, together).json)
    assert {link["src"]: link["bw"] for link in found["links"] if link["src"] in "abcd"} == pytest.approx(dict(zip("abcd", rates)), rel=0.01)


def test_a_program_is_drawn_as_the_command_line_draws_it(network, tmp_path):
    program = shoal.program.build(network)
    program.save(tmp_path / "p.json")
    for on, flags in ((None, []), (network, ["--topology", tmp_path / "slow.json"])):
        subprocess.run([pool_program(), "program", "show", tmp_path / "p.json", "--svg", tmp_path / "p.svg", *flags], check=True)
        assert program.svg(on) == (tmp_path / "p.svg").read_text()
    assert "<svg" in program.svg() and program.svg() != program.svg(network)


@pytest.mark.parametrize("source, words, line", [
    ("torus 4y4", {"rate": "1gbit"}, 'size: "4y4" is not like 4x8'),
    ("torus 4x4", {"uplink": "1gbit", "rate": "1gbit"}, "--uplink: is of fattree and sites, not of torus"),
    ("no_such.json", {}, "no_such.json: cannot be read"),
    (SLOW, {"rate": "1gbit"}, "rate: belongs to a form, not to a file or a dict"),
    (SLOW | {"links": [{"src": "a", "dst": "s", "bw": -1}]}, {}, r"links\[0\].bw: must be a positive number"),
    (SLOW | {"links": [{"src": "a", "dst": "s", "bw": float("nan")}]}, {}, "contents: are no JSON"),
], ids=["size", "flag", "file", "words", "rate", "nan"])
def test_what_is_no_network_is_one_line(source, words, line):
    with pytest.raises(shoal.Error, match=line):
        shoal.Network(source, **words)


def test_what_is_wrong_is_one_line(network, tmp_path):
    with pytest.raises(shoal.Error, match="there is no collective sum"):
        shoal.program.build(network, "sum")
    with pytest.raises(shoal.Error, match="there is no mode none for all_reduce"):
        shoal.program.build(network, mode="none")
    for root in (-1, 4, 1 << 40):
        with pytest.raises(shoal.Error, match=f"root {root} of 4 hosts"):
            shoal.program.build(network, "broadcast", root=root)
    with pytest.raises(shoal.Error, match="no_such.json: cannot be read: No such file"):
        shoal.program.load(tmp_path / "no_such.json")
    (tmp_path / "cut.json").write_bytes(b'{"v": 1, "name": "\xff')
    with pytest.raises(shoal.Error, match=r"cut.json: \$: not JSON: byte \d+ is out of place"):
        shoal.program.load(tmp_path / "cut.json")
    for bytes in (float("nan"), -1, float("inf"), 1e30):
        with pytest.raises(shoal.Error, match="bytes: is no number of bytes"):
            shoal.program.build(network, mode="ring").price(network, bytes=bytes)
        with pytest.raises(shoal.Error, match="bytes: is no number of bytes"):
            shoal.program.build(network, bytes=bytes)
    SLOW["links"][0]["bw"] = 400
    (tmp_path / "other.json").write_text(json.dumps(SLOW))
    with pytest.raises(shoal.Error, match="certificate is for another topology"):
        shoal.program.build(network).verify(shoal.Network(tmp_path / "other.json"))


def test_a_model_that_cannot_be_read_is_one_line(network, tmp_path):
    with pytest.raises(shoal.Error, match="missing.json: cannot be read: No such file"):
        shoal.plan(tmp_path / "missing.json", network, gflops=1)
    (tmp_path / "cut.json").write_bytes(b'{"name": "\xff')
    with pytest.raises(shoal.Error, match="model: is not JSON"):
        shoal.plan(str(tmp_path / "cut.json"), network, gflops=1)


@pytest.mark.parametrize("rates, line", [([], "network: 0 rates of 3 flows that send together"), ([1, 2, float("nan")], "nan is no rate of a flow from host"),
                                         ([1, 2, 0], "0 is no rate of a flow from host")], ids=["none", "nan", "zero"])
def test_rates_that_are_none_are_one_line(rates, line):
    with pytest.raises(shoal.Error, match=line):
        shoal.Network.infer("abcd", [[1e6] * 4] * 4, [[1e-4] * 4] * 4, lambda flows: rates)


@pytest.mark.parametrize("change, line", [({"shares": [1]}, "1 shares of 4 chunks"), ({"collective": "all_to_all"}, "chunks"), ({"chunks": 1}, "chunk 1 of 1")],
                         ids=["shares", "collective", "chunks"])
def test_what_is_no_program_of_its_claims_has_no_price(network, change, line):
    ring = json.loads(shoal.program.build(network, mode="direct").json)
    ring.pop("certificate", None)
    with pytest.raises(shoal.Error, match=line):
        shoal.program.Program(json.dumps(ring | change)).price(network, bytes=1e6)
