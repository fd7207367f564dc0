"""Members on hosts with several networks, several families of addresses and wrong names: they meet over what works, and only where they
were told to. And torchrun with an agent on each of two hosts."""

import json
import os
import sys

import pytest
import safetensors.torch
import torch

import tiny
from pool import program
from ssh_hosts import SshHosts
from ssh_hosts import installed as ssh_installed
from test_launchers import JOIN, variables

PORT = 29400


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Two hosts with both families on c0, and a network d0 between them that ssh does not use."""
    if not ssh_installed():
        pytest.skip("needs root, network namespaces and openssh-server")
    with SshHosts(tmp_path_factory.mktemp("networks"), 2) as started:
        started.ip(0, "link", "add", "d0", "type", "veth", "peer", "name", "d0", "netns", started.network(1))
        for i in range(2):
            started.ip(i, "link", "set", "d0", "addrgenmode", "none", "up")
            started.ip(i, "address", "add", f"10.78.0.{i + 1}/24", "dev", "d0")
            started.ip(i, "address", "add", f"fd00:77::{i + 1}/64", "dev", "c0", "nodad")
        yield started


def shoal_run(*flags, command, hosts="host0,host1") -> list[str]:
    return [program(), "run", "--hosts", hosts, *flags, "--", *command]


# --- one interface

BYTES = 32 << 20
SEND = f"""
import shoal
shoal.init()
assert len(shoal.session.broadcast_bytes(shoal.session.current(), bytes({BYTES}), 0, "much")) == {BYTES}
"""


def passed(hosts, interface: str) -> int:
    counts = json.loads(hosts.ip(0, "-j", "-s", "link", "show", "dev", interface))[0]["stats64"]
    return counts["rx"]["bytes"] + counts["tx"]["bytes"]


def test_the_bytes_of_a_run_pass_by_the_interface_that_was_named(hosts):
    """Without the name they would pass by c0, which the hosts have first; ssh itself, with what it carries, stays there."""
    before = {name: passed(hosts, name) for name in ("c0", "d0")}
    ended = hosts.on(0, shoal_run("--verbose", command=[sys.executable, "-c", SEND]), OMP_NUM_THREADS="1", SHOAL_INTERFACE="d0",
                     SHOAL_PACKING="never")  # bytes are counted, of zeros
    assert ended.returncode == 0, ended.stderr
    assert "shoal: rank 0 (host0) reaches rank 1 (host1) at 10.78.0.2:" in ended.stderr
    assert "shared memory" not in ended.stderr  # one machine, but two network namespaces
    grown = {name: passed(hosts, name) - before[name] for name in before}
    assert grown["d0"] > BYTES and grown["c0"] < BYTES // 32, grown


def test_far_members_come_to_the_launcher_by_the_interface_that_was_named(hosts):
    """Not where their ssh came from."""
    ended = hosts.on(0, shoal_run("--interface", "d0", command=["sh", "-c", "echo $SHOAL_INTERFACE ${SHOAL_COORD%:*}"]))
    assert sorted(ended.stdout.splitlines()) == ["[0] d0 10.78.0.1", "[1] d0 10.78.0.1"], ended.stderr


def test_an_interface_that_there_is_not_is_refused_with_those_there_are(hosts):
    ended = hosts.on(0, shoal_run("--interface", "e0", command=["true"]))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "--interface: host0 has no interface e0 (those that are up: lo, c0, d0)\n"


def test_an_interface_that_is_down_on_the_far_host_is_refused_there(hosts):
    """At once, though nobody else can be reached without it."""
    hosts.ip(1, "link", "set", "d0", "down")
    try:
        ended = hosts.on(0, shoal_run("--interface", "d0", command=[sys.executable, "-c", JOIN], hosts="host1:2"), OMP_NUM_THREADS="1")
    finally:
        hosts.ip(1, "link", "set", "d0", "up")
    assert ended.returncode == 2, ended.stderr
    line = "shoal: SHOAL_INTERFACE: interface d0 of host1 is down or has no address that is not link-local (those that are up: lo, c0)"
    # Who says it first ends the run; the other may not have come to say it, and says nothing else.
    said = {text for text in ended.stderr.splitlines() if text.startswith("[")}
    assert said and said <= {f"[{rank}] {line}" for rank in (0, 1)} and f"failed first: exit status 2: {line}" in ended.stderr, ended.stderr
    hosts.until_idle([0, 1])


# --- two families of addresses


def member(hosts, rank: int, names: str, coordinator: str):
    """As a pod of an indexed job, in this lab."""
    given = {"JOB_COMPLETION_INDEX": str(rank), "SHOAL_SIZE": "2", "SHOAL_JOB": "train", "SHOAL_SECRET": "hush", "SHOAL_VERBOSE": "1",
             "SHOAL_JOIN_TIMEOUT": "60", "SHOAL_COORD": coordinator}
    return hosts.start(rank, hosts.named(names, [sys.executable, "-c", JOIN]), **variables(**given))


@pytest.fixture(params=[("fd00:77::{}", "10.77.0.{}"), ("10.77.0.{}", "fd00:77::{}")], ids=["ipv6", "ipv4"])
def half_broken(request, hosts):
    """Hosts with c0 alone. What they send each other by the first family goes to a station that is not there; the second works."""
    broken, works = request.param
    for i in range(2):
        hosts.ip(i, "link", "set", "d0", "down")
        hosts.ip(i, "neighbour", "replace", broken.format(2 - i), "lladdr", "02:00:00:00:00:77", "nud", "permanent", "dev", "c0")
    yield [works.format(i + 1) for i in range(2)]
    for i in range(2):
        hosts.ip(i, "neighbour", "delete", broken.format(2 - i), "dev", "c0")
        hosts.ip(i, "link", "set", "d0", "up")


def test_hosts_where_one_family_is_silently_broken_meet_over_the_other(hosts, half_broken):
    """The name of rank 0's host stands for an address that nobody has and one of each family; that host itself takes it for another's."""
    elsewhere, there = "192.0.2.1 host0\n", "10.77.0.99 meet\nfd00:77::1 meet\n10.77.0.1 meet\n"
    started = [member(hosts, 0, elsewhere, f"host0:{PORT}"), member(hosts, 1, there, f"meet:{PORT}")]
    said = [process.communicate(timeout=100) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert [out for out, _ in said] == ["member 0 of 2\n", "member 1 of 2\n"]
    address = half_broken[0] if "." in half_broken[0] else f"[{half_broken[0]}]"
    assert f"shoal: rank 1 (host1) reaches rank 0 (host0) at {address}:" in said[1][1]


# --- torchrun, an agent on each host

TRAIN = """
import os, signal, sys
import torch, shoal, tiny
torch.set_num_threads(1)
shoal.init()
net, optimizer = tiny.wrap(tiny.model())
kept = shoal.Checkpoints("kept")
state = kept.load(net, optimizer) or {"step": 0}
sys.stdout.write(f"member {shoal.rank()} of {shoal.size()} goes on after {state['step']}\\n")
sys.stdout.flush()
for step in range(state["step"] + 1, 9):
    optimizer.zero_grad()
    tiny.loss(net, step, shoal.rank()).backward()
    optimizer.step()
    if step % 3 == 0:
        kept.save(step, net, optimizer, step=step)
    if state["step"] == 0 and step == 5:
        kept.flush()
        shoal.session.current().gather(b"", "everybody has saved")
        if shoal.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
shoal.save("end.safetensors", net)
"""


def test_torchrun_on_two_hosts_goes_on_from_the_checkpoint_when_a_worker_was_killed(hosts, tmp_path):
    """Saved after step 3, killed after step 5. Relation: the values after step 8 are those of one process that takes all steps."""
    (tmp_path / "train.py").write_text(TRAIN)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d",
                "--rdzv-endpoint", f"host0:{PORT}", "--rdzv-id", "7", "--max-restarts", "1", "--monitor-interval", "0.1", "train.py"]
    names = "10.77.0.1 host0\n10.77.0.2 host1\n"
    given = variables(PYTHONPATH=os.path.dirname(__file__), SHOAL_SECRET="hush")
    agents = [hosts.start(i, ["env", "--chdir", str(tmp_path), *hosts.named(names, torchrun)], **given) for i in range(2)]
    said = [agent.communicate(timeout=200) for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said
    assert sorted("".join(out for out, _ in said).splitlines()) == [f"member {r} of 2 goes on after {s}" for r in (0, 1) for s in (0, 3)]

    torch.set_num_threads(1)
    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in range(1, 9):
        tiny.oracle_step(net, optimizer, [lambda n, r=r, s=step: tiny.loss(n, s, r).backward() for r in range(2)])
    ended = safetensors.torch.load_file(tmp_path / "end.safetensors")
    assert tiny.equal([ended[f"model.{name}"] for name in net.state_dict()], tiny.values(net)), ended.keys()
    hosts.until_idle([0, 1])
