"""What goes on around training and must not be felt: strangers at a member's door, members that have nothing to do, and every
byte that is sent beyond those that the sum needs."""

import hashlib
import json
import re
import socket
import subprocess
import sys
import time

import pytest
import torch

import shoal
import tiny
from pool import launch
from shoal import session


def step_once(net, optimizer, step: int) -> None:
    optimizer.zero_grad()
    tiny.loss(net, step, shoal.rank()).backward()
    optimizer.step()


class Strangers:
    """Connections to every member's own port that prove nothing: silent ones, garbage, an endless greeting."""

    def __init__(self, addresses: list[str]):
        self.sockets = []
        for address in addresses:
            host, port = address.rsplit(":", 1)
            for i in range(50):
                self.sockets.append(socket.create_connection((host, int(port)), timeout=10))
                if i % 3:
                    self._pour(self.sockets[-1], (b"GET / HTTP/1.1\r\n", hashlib.sha256(bytes([i])).digest())[i % 3 - 1] * 2000)

    @staticmethod
    def _pour(stranger: socket.socket, garbage: bytes) -> None:
        stranger.setblocking(False)
        try:
            stranger.send(garbage)
        except OSError:
            pass  # refused already

    def answers(self) -> bytes:
        """All that members have said to them so far."""
        heard = b""
        for stranger in self.sockets:
            stranger.setblocking(False)
            try:
                heard += stranger.recv(4096)
            except OSError:
                pass
        return heard

    def close(self) -> None:
        for stranger in self.sockets:
            stranger.close()


def train_among_strangers(steps: int, plan: str = "auto", disturbed: bool = False):
    net, optimizer = tiny.wrap(tiny.model(), plan=plan)
    strangers = []
    for step in range(steps):
        if disturbed and step % 5 == 1 and shoal.rank() == 0:
            strangers.append(Strangers(session.current().addresses))
        step_once(net, optimizer, step)
    heard = b"".join(some.answers() for some in strangers)
    for some in strangers:
        some.close()
    return tiny.values(net), net.plan, heard


def test_strangers_at_every_members_port_change_nothing(pool, tmp_path):
    undisturbed = pool(3).run(train_among_strangers, 12)
    saved = tmp_path / "plan.json"
    saved.write_text(undisturbed[0][1])
    disturbed = pool(3).run(train_among_strangers, 12, str(saved), True)
    for (values, _, heard), (expected, _, _) in zip(disturbed, undisturbed):
        assert tiny.equal(values, expected)
        assert heard == b""  # nothing is said to who has not proved the secret


def idle_share(seconds: float) -> float:
    """CPU time of this process while nothing happens, as a share of the time."""
    session.current().gather(b"", "all are here")
    wall, cpu = time.monotonic(), time.process_time()
    time.sleep(seconds)  # the idleness itself
    return (time.process_time() - cpu) / (time.monotonic() - wall)


def test_an_idle_member_uses_less_than_one_percent_of_a_core(pool):
    assert max(pool(2).run(idle_share, 4.0)) < 0.01


def payload_of_steps(plan: str, steps: int):
    """Bytes that this member sent in `steps` steps, without frames' headers; parameters of the model."""
    net, optimizer = tiny.wrap(torch.nn.Sequential(torch.nn.Linear(6, 40_000), torch.nn.Linear(40_000, 3)), plan=plan)
    here = session.current()
    for step in range(5):  # beyond these the plan in use is the saved one
        step_once(net, optimizer, step)
    net.flush()  # the last step may still be on its way
    before = sum(link["sent"] for link in here.links())
    for step in range(steps):
        step_once(net, optimizer, 5 + step)
    net.flush()
    here.gather(b"", "all have stepped")
    sent = sum(link["sent"] for link in here.links()) - before
    return sent, sum(p.numel() for p in net.parameters()), net.plan


@pytest.mark.parametrize("members, way", [(2, "direct"), (3, "ring"), (4, "direct"), (4, "halving_doubling")])
def test_a_step_sends_the_bytes_of_the_formula(pool, tmp_path, members, way):
    plan = json.loads(pool(members).run(payload_of_steps, "auto", 0)[0][2])
    for unit in plan["units"]:
        unit["way"] = way
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(plan))
    steps = 3
    for sent, parameters, _ in pool(members).run(payload_of_steps, str(saved), steps):
        formula = steps * 2 * (members - 1) / members * 4 * parameters
        assert formula <= sent * 1.0001 and sent <= 1.01 * formula


def test_a_verbose_run_says_where_each_member_reaches_the_others():
    members = launch(2, [sys.executable, "-c", "import shoal; shoal.init()"], flags=["--verbose"], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    _, err = members.communicate(timeout=60)
    host = re.escape(socket.gethostname())
    for rank, other in ((0, 1), (1, 0)):
        line = rf"^\[{rank}\] shoal: rank {rank} \({host}\) reaches rank {other} \({host}\) at 127\.0\.0\.1:\d+ and through shared memory$"
        assert re.search(line, err, re.MULTILINE), err
