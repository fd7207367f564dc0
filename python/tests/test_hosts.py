"""Members on other hosts, started by plain ssh: hosts in network namespaces, each with a real sshd."""

import signal
import sys

import pytest

from pool import program
from ssh_hosts import SshHosts
from ssh_hosts import installed as ssh_installed
from test_launchers import JOIN, check_trained, data, example  # noqa: F401  data is a fixture


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    if not ssh_installed():
        pytest.skip("needs root, network namespaces and openssh-server")
    with SshHosts(tmp_path_factory.mktemp("ssh"), 3) as started:
        yield started


def shoal_run(*words) -> list[str]:
    return [program(), "run", *words]


def test_the_example_on_three_hosts_by_ssh(hosts, data):  # noqa: F811
    check_trained(hosts.on(0, shoal_run("--hosts", "host0,host1,host2", "--", *example(data)), OMP_NUM_THREADS="1"))


def test_words_and_variables_reach_a_far_member_unchanged_and_the_secret_no_command_line(hosts):
    words = ["a 'b' \"c\" $HOME", "*", ";", ""]
    script = ('! printf %s "$SHOAL_SECRET" | grep -q -s -F -f - /proc/[0-9]*/cmdline && '
              'printf "%s|" "$SHOAL_RANK/$SHOAL_SIZE" "$(hostname)" "$PWD" "$ODD" "$@"; echo')
    ended = hosts.on(0, shoal_run("--hosts", "host1,host2:2", "--", "bash", "-c", script, "x", *words), ODD="it's; odd")
    assert ended.returncode == 0, ended.stderr
    expected = [f"[{rank}] {rank}/3|{host}|{hosts.folder}|it's; odd|{'|'.join(words)}|" for rank, host in enumerate(("host1", "host2", "host2"))]
    assert sorted(ended.stdout.splitlines()) == expected


def test_the_status_of_a_far_member_is_that_of_the_run(hosts):
    ended = hosts.on(0, shoal_run("--hosts", "host1,host2", "--", "sh", "-c", "[ $SHOAL_RANK = 0 ] && exec sleep 1; exit 7"))
    assert ended.returncode == 7
    assert ended.stderr.endswith("shoal: rank 1 failed first: exit status 7\n")
    hosts.until_idle([1, 2])


def test_a_host_that_cannot_be_reached(hosts):
    ended = hosts.on(0, shoal_run("--hosts", "host1,nowhere", "--", "sleep", "1"))
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(
        "shoal: rank 1 failed first: cannot start a member on host nowhere (`ssh nowhere` must work without a question, "
        "and Shoal be there at the same path as here): ssh: connect to host 10.77.0.2 port 9: Connection refused")
    hosts.until_idle([1])


def test_a_command_that_the_far_host_lacks(hosts):
    ended = hosts.on(0, shoal_run("--hosts", "host1", "--", "no-such-command"))
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "shoal: rank 0 failed first: exit status 2: host host1: command not found: no-such-command"


FAMILY = "setsid sleep 600 & echo up; exec sleep 600"  # one of it flees from its group


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "term", "killed"])
def test_nothing_is_left_on_far_hosts_when_the_launcher_ends(hosts, how):
    process = hosts.start(0, shoal_run("--hosts", "host1,host2", "--", "sh", "-c", FAMILY))
    assert sorted(process.stdout.readline() for _ in range(2)) == ["[0] up\n", "[1] up\n"]
    process.send_signal(how)
    _, err = process.communicate(timeout=30)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[how], err
    hosts.until_idle([1, 2])


def test_a_connection_that_is_lost_ends_the_run_and_the_far_member(hosts):
    script = f"[ $SHOAL_RANK = 0 ] && echo up && exec sleep 2; {FAMILY}"
    process = hosts.start(0, shoal_run("--hosts", "host1,host2", "--", "sh", "-c", script))
    assert sorted(process.stdout.readline() for _ in range(2)) == ["[0] up\n", "[1] up\n"]
    assert hosts.cut_connections(2) > 0
    _, err = process.communicate(timeout=30)
    assert process.returncode == 3, err
    assert "shoal: rank 1 failed first: lost the connection with host host2" in err
    hosts.until_idle([1, 2])


def test_hosts_that_have_only_ipv6(hosts):
    """The last of these tests: it takes their IPv4 addresses away."""
    for i in range(3):
        hosts.ip(i, "address", "flush", "dev", "c0", "scope", "global")
        hosts.ip(i, "address", "add", f"fd00:77::{i + 1}/64", "dev", "c0", "nodad")
    ended = hosts.on(0, shoal_run("--verbose", "--port-range", "20000-20010", "--hosts", "six1,six2", "--", sys.executable, "-c", JOIN))
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["[0] member 0 of 2", "[1] member 1 of 2"]
    assert "reaches rank 1 (host2) at [fd00:77::3]:200" in ended.stderr
