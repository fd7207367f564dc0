"""Members are killed while others train: the others take every step, with the mean of those who contributed, and stay equal to the last bit."""

import json
import os
import subprocess
import sys

import pytest

SHOAL = os.path.join(os.path.dirname(sys.executable), "shoal")

# Each survivor says after every step who was left, and in the end the bits of its parameters. argv: {victim: [step, seconds]}, steps, plan, accumulate.
TRAIN = """
import hashlib, json, os, signal, sys, threading, time
import torch
import shoal

victims, steps, plan = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

def batch(rank, step):
    draw = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(2 + rank, 40, generator=draw, dtype=torch.float64)
    return x, x[:, :3].sum(1, keepdim=True)

def model_of(seed=0):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(40, 300), torch.nn.Tanh(), torch.nn.Linear(300, 300), torch.nn.Tanh(), torch.nn.Linear(300, 1)]
    return torch.nn.Sequential(*layers).double()

def train():
    shoal.init()
    model = model_of()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model, optimizer = shoal.data_parallel(model, optimizer, plan=plan)
    left, losses = [], []
    for step in range(steps):
        if str(shoal.rank()) in victims and step == victims[str(shoal.rank())][0]:
            def die(after=victims[str(shoal.rank())][1]):
                time.sleep(after)
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Thread(target=die).start()
        x, y = batch(shoal.rank(), step)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        left.append(shoal.members())
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print("told " + json.dumps([left, hashlib.sha256(bits).hexdigest(), [p.sum().item() for p in model.parameters()], losses]), flush=True)

if __name__ == "__main__":
    train()
"""


def run(folder, victims, steps=40, plan="auto", members=4, expect=0):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    script = folder / "train.py"
    script.write_text(TRAIN)
    command = [SHOAL, "run", "-n", str(members), "--on-peer-lost", "shrink", "--", sys.executable, str(script), json.dumps(victims), str(steps), plan]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == expect, ended.stdout + ended.stderr
    told = [json.loads(line.split("told ")[1]) for line in ended.stdout.splitlines() if "told " in line]
    return told, ended.stdout + ended.stderr


def replayed(left, steps):
    """The same steps by one process: the sums of its parameters."""
    import torch

    scope = {"__name__": "replayed", "sys": None}
    arguments, sys.argv = sys.argv, ["", "{}", str(steps), "auto"]
    try:
        exec(TRAIN, scope)
    finally:
        sys.argv = arguments
    model = scope["model_of"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        parts = [scope["batch"](rank, step) for rank in left[step]]
        samples = sum(len(x) for x, _ in parts)
        for x, y in parts:
            (torch.nn.functional.mse_loss(model(x), y) * len(x) / samples).backward()
        optimizer.step()
    return [p.sum().item() for p in model.parameters()]


@pytest.mark.parametrize("plan", ["auto", "ddp:25MB", "p3", "ring"])
def test_training_goes_on_without_whom_is_killed(tmp_path, plan):
    told, said = run(tmp_path, {"2": [11, 0.004]}, plan=plan)
    assert len(told) == 3
    left, bits, sums, losses = told[0]
    assert all(other[:2] == [left, bits] for other in told), "survivors differ"
    assert left[5] == [0, 1, 2, 3] and left[-1] == [0, 1, 3]
    assert sums == pytest.approx(replayed(left, 40), rel=1e-9, abs=1e-9), "some step was not the mean over those who contributed"
    assert "rank 2 was lost: killed by signal 9 (KILL); the others went on" in said


@pytest.mark.parametrize("moment", range(12))
def test_whenever_it_is(tmp_path, moment):
    """Rank 0 too, two at once, in the first step, while the plan is chosen."""
    victims = {str(moment % 4): [[0, 2, 3, 9][moment // 3], 0.002 * (moment % 3)]}
    if moment % 2 == 1:
        victims[str((moment + 1) % 4)] = [[0, 2, 3, 9][moment // 3] + moment % 3, 0.001 * (moment % 5)]
    told, said = run(tmp_path, victims, steps=20)
    assert len(told) == 4 - len(victims), said
    left, bits, sums, losses = told[0]
    assert all(other[:2] == [left, bits] for other in told), "survivors differ"
    assert left[-1] == [rank for rank in range(4) if str(rank) not in victims]
    assert sums == pytest.approx(replayed(left, 20), rel=1e-9, abs=1e-9)


def test_the_last_one_goes_on_alone(tmp_path):
    told, said = run(tmp_path, {"0": [3, 0.001], "1": [8, 0.001]}, steps=20, members=3)
    assert len(told) == 1 and told[0][0][-1] == [2]
    assert told[0][2] == pytest.approx(replayed(told[0][0], 20), rel=1e-9, abs=1e-9)
