"""Programs made for networks, from Python: as `shoal program` makes and prices them."""

import json

import pytest

import shoal

SLOW = {"name": "one slow host", "bandwidth_unit": "Mbit/s", "compute": ["a", "b", "c", "d"], "switches": ["s"],
        "links": [link for host, rate in zip("abcd", (500, 500, 500, 100))
                  for link in ({"src": host, "dst": "s", "bw": rate}, {"src": "s", "dst": host, "bw": rate})]}


@pytest.fixture
def network(tmp_path):
    (tmp_path / "slow.json").write_text(json.dumps(SLOW))
    return shoal.program.Network(tmp_path / "slow.json")


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
    torus = shoal.program.Network(tmp_path / "torus.json")
    program = shoal.program.build(torus, mode="torus")
    assert program.name == "torus" and program.verify(torus)["efficiency"] == pytest.approx(1)
    assert shoal.program.build(torus).name == "torus"  # nothing is quicker
    with pytest.raises(shoal.Error, match="is no grid: it has switches, as s"):
        shoal.program.build(network, mode="mesh-ring")


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
        shoal.program.build(network).verify(shoal.program.Network(tmp_path / "other.json"))


@pytest.mark.parametrize("change, line", [({"shares": [1]}, "1 shares of 4 chunks"), ({"collective": "all_to_all"}, "chunks"), ({"chunks": 1}, "chunk 1 of 1")],
                         ids=["shares", "collective", "chunks"])
def test_what_is_no_program_of_its_claims_has_no_price(network, change, line):
    ring = json.loads(shoal.program.build(network, mode="direct").json)
    ring.pop("certificate", None)
    with pytest.raises(shoal.Error, match=line):
        shoal.program.Program(json.dumps(ring | change)).price(network, bytes=1e6)
