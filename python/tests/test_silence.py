"""A member that falls silent in the middle of training, its cable cut or its process stopped: every survivor names it within
8 s, also one that is blocked in a large send, and a member that hears nobody says that it is cut off itself."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import labs
from pool import launch, program

WITHIN = 8  # seconds, promised; a member is lost after 5 s of silence

# 8 MB of gradients a step: at any moment members are in the middle of large sends.
TRAINING = """
import os, time
import torch, shoal
torch.set_num_threads(1)
net = torch.nn.Linear(1000, 2000)
net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1))
try:
    for step in range(100_000):
        optimizer.zero_grad()
        net(torch.ones(2, 1000)).sum().backward()
        optimizer.step()
        if step == 1:
            print("TRAINS", shoal.rank(), os.getpid(), flush=True)
except shoal.PeerLost as error:
    print("SAW", shoal.rank(), time.monotonic(), error, flush=True)
    raise
"""


class Run:
    """Three members in training. Ends with the `with`, also when its members do not."""

    def __init__(self, *flags: str):
        self._process = launch(3, [sys.executable, "-c", TRAINING], flags=list(flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._watchdog = threading.Timer(60, self._process.kill)
        self._watchdog.start()

    def __enter__(self) -> "Run":
        self.pids = {int(rank): int(pid) for rank, pid in self.said("TRAINS", 3)}
        return self

    def __exit__(self, *_) -> None:
        self._watchdog.cancel()
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def said(self, word: str, count: int) -> list[list[str]]:
        """Rank and the rest of the first `count` lines with this word."""
        lines = []
        while len(lines) < count:
            line = self._process.stdout.readline()
            assert line, f"{len(lines)} of {count} members said {word}:\n{self._process.stderr.read()}"
            if word in line:
                lines.append(line.split(word)[1].strip().split(maxsplit=2 if word == "SAW" else 1))
        return lines

    def losses(self, count: int, since: float) -> dict[int, str]:
        seen = self.said("SAW", count)
        late = {rank: float(when) - since for rank, when, _ in seen}
        assert max(late.values()) < WITHIN, late
        return {int(rank): line for rank, _, line in seen}

    def end(self) -> tuple[int, str]:
        _, err = self._process.communicate(timeout=30)
        return self._process.returncode, err


@pytest.fixture
def lab():
    with labs.up("silence", "-n", "3", "--rate", "100mbit") as name:
        yield name


@pytest.mark.parametrize("isolated", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_cut_cable(lab, isolated):
    survivors = [rank for rank in range(3) if rank != isolated]
    with Run("--lab", lab) as run:
        cut = time.monotonic()
        subprocess.run([program(), "lab", "cut", lab, str(isolated)], check=True)
        seen = run.losses(3, cut)
        code, err = run.end()
    for rank in survivors:
        assert seen[rank].startswith(f"rank {isolated} (host{isolated}) was lost: not heard for "), seen
    assert seen[isolated] == f"this member (rank {isolated} (host{isolated})) is cut off: it hears no other member"
    assert code == 3
    assert f"[{isolated}] shoal: {seen[isolated]}" in err


def test_a_stopped_member():
    with Run() as run:
        stopped = time.monotonic()
        os.kill(run.pids[1], signal.SIGSTOP)
        try:
            seen = run.losses(2, stopped)
        finally:
            os.kill(run.pids[1], signal.SIGKILL)
        code, err = run.end()
    assert sorted(seen) == [0, 2]
    for line in seen.values():
        assert line.startswith("rank 1 (") and "was lost: not heard for " in line
    assert code == 3
    assert err.splitlines()[-1].startswith("shoal: rank 1 failed first: killed by signal 9 (KILL)")
    (folder,) = [line.removeprefix("shoal: run folder ") for line in err.splitlines() if line.startswith("shoal: run folder ")]
    told = subprocess.run([program(), "explain", folder], capture_output=True, text=True, timeout=60).stdout
    assert "has not been heard for 2 s" in told, told
