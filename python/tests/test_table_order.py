"""What members of an asynchronous run did is recorded, and done again to the bit: rows, what was read, what functions returned."""

import os
import subprocess
import sys

import pytest

SHOAL = os.path.join(os.path.dirname(sys.executable), "shoal")

# What is learnt depends on everything that was read; two tables, and a function that writes.
LEARN = """
import hashlib, sys
import numpy as np, shoal

shoal.init()
consistency, seed = sys.argv[1], int(sys.argv[2])
values = shoal.Table("values", 4, consistency=consistency, initial=shoal.Initial.normal(0, 1, seed=2), rule=sys.argv[3])
sums = shoal.Table("sums", 2, dtype="float64", consistency="async")
def halve(keys, rows, argument):
    rows /= 2
    return rows.sum(1)
if sys.argv[3] == "sum":
    values.define("halve", halve)
random = np.random.default_rng(seed + shoal.rank())
digest = hashlib.sha256()
for clock in range(30):
    keys = random.integers(0, 40, 8)
    rows = values.read(keys)
    digest.update(rows.tobytes())
    values.add(keys, 0.1 * np.tanh(rows + random.normal(size=rows.shape)))
    sums.add(keys, rows[:, :2])
    if sys.argv[3] == "sum" and clock % 10 == 5:
        digest.update(values.call("halve", keys[:2]).tobytes())
    digest.update(sums.read(keys).tobytes())
    sums.tick()
    values.tick()
values.barrier()
sums.barrier()
digest.update(values.read(np.arange(40)).tobytes() + sums.read(np.arange(40)).tobytes())
print("digest", digest.hexdigest(), flush=True)
sums.barrier()
"""


def digests(folder, kept, consistency, seed, rule):
    command = [SHOAL, "run", "-n", "3", "--", sys.executable, "-c", LEARN, consistency, str(seed), rule]
    ended = subprocess.run(command, cwd=folder, env={**os.environ, **kept, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120)
    return sorted(line for line in ended.stdout.splitlines() if "digest" in line), ended


# Each member's parameters as its forward passes found them.
TRAIN = """
import hashlib, torch, shoal, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(tiny.model())
digest = hashlib.sha256()
for step in range(20):
    tiny.step(net, optimizer, step, shoal.rank())
    for value in net.module.state_dict().values():
        digest.update(value.numpy().tobytes())
print("digest", digest.hexdigest(), flush=True)
"""


def test_a_model_whose_parameters_are_served_at_any_age_is_trained_again(tmp_path):
    def trained(**kept):
        ended = subprocess.run([SHOAL, "run", "-n", "2", "--", sys.executable, "-c", TRAIN], cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=120,
                               env={**os.environ, **kept, "SHOAL_PLAN": "ps:async", "OMP_NUM_THREADS": "1"})
        assert ended.returncode == 0, ended.stderr
        return sorted(line for line in ended.stdout.splitlines() if "digest" in line)

    recorded = trained(SHOAL_RECORD=str(tmp_path))
    assert len({line.split()[-1] for line in recorded}) == 2  # each saw the other's gradients at its own moments
    assert trained(SHOAL_REPLAY=str(tmp_path)) == recorded


@pytest.mark.parametrize(("consistency", "rule"), [("async", "sum"), pytest.param("async", "adaptive-revision:0.1", marks=pytest.mark.slow)])
def test_a_run_is_run_again(tmp_path, consistency, rule):
    folder = str(tmp_path / "order")
    recorded, ended = digests(tmp_path, {"SHOAL_RECORD": folder}, consistency, 1, rule)
    assert len(recorded) == 3, ended.stdout + ended.stderr
    again, ended = digests(tmp_path, {"SHOAL_REPLAY": folder}, consistency, 1, rule)
    assert again == recorded, ended.stdout + ended.stderr


def test_another_run_is_told_so(tmp_path):
    folder = str(tmp_path / "order")
    digests(tmp_path, {"SHOAL_RECORD": folder}, "async", 1, "sum")
    _, ended = digests(tmp_path, {"SHOAL_REPLAY": folder}, "async", 2, "sum")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "of the recorded run was another one (replay the same program with the same data, options and seed)" in ended.stdout + ended.stderr


def test_not_where_members_may_be_lost(tmp_path):
    ended = subprocess.run([SHOAL, "run", "-n", "2", "--on-peer-lost", "shrink", "--", sys.executable, "-c", LEARN, "async", "1", "sum"], cwd=tmp_path,
                           env={**os.environ, "SHOAL_RECORD": "order"}, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "a run is recorded or a replay where the first lost member ends it; not with --on-peer-lost shrink" in ended.stdout + ended.stderr
