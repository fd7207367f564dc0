"""What a run leaves to look at, however its members were started: one folder with all members' events and a report."""

import json
import subprocess
import sys
import types

import pytest

from pool import environment, launch, program
from shoal import recording

TRAIN = """
import os, sys, time
if "RANK" in os.environ:  # under torchrun: a disk for each member, as on several machines
    os.environ["SHOAL_RUN_DIR"] = os.path.join(sys.argv[1], os.environ["RANK"])
import torch, shoal, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(tiny.model())
for step in range(6):
    time.sleep(0.02)  # data that takes its time
    optimizer.zero_grad()
    tiny.loss(net, step, shoal.rank()).backward()
    optimizer.step()
    if step == 4 and shoal.rank() == 1 and "fail" in sys.argv:
        raise ValueError("no such thing")
"""


def test_an_optimizer_need_not_have_a_learning_rate(monkeypatch):
    flushed = []
    monkeypatch.setattr(recording, "_recorder", types.SimpleNamespace(flush=lambda: flushed.append(True)))
    monkeypatch.setattr(recording, "_flushed", float("-inf"))
    recording.tick(types.SimpleNamespace(param_groups=[{"params": []}]))
    assert flushed


def check_folder(folder, members: int) -> None:
    assert (folder / "report.html").stat().st_size > 1000
    assert (folder / "trace.json.gz").exists() and (folder / "plan.json").exists()
    run = json.loads((folder / "run.json").read_text())
    assert [member["rank"] for member in run["members"]] == list(range(members))
    kinds = {(event.get("rank"), event.get("kind")) for event in map(json.loads, (folder / "events.jsonl").read_text().splitlines())}
    assert {(rank, "backward") for rank in range(members)} <= kinds, kinds


def test_under_torchrun_events_of_other_disks_come_to_rank_0(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TRAIN)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**environment(), "OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr
    check_folder(tmp_path / "0", 2)
    assert f"shoal: report {tmp_path}/0/report.html" in ended.stderr
    assert sorted(file.name for file in (tmp_path / "1").iterdir()) == ["events-1.jsonl"]


@pytest.mark.parametrize("how", ["done", "fail"])
def test_a_script_under_shoal_run_leaves_a_report_also_when_it_fails(tmp_path, how):
    process = launch(2, [sys.executable, "-c", TRAIN, str(tmp_path), how], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=120)
    assert process.returncode == (1 if how == "fail" else 0), err
    (folder,) = (tmp_path / "runs").iterdir()
    check_folder(folder, 2)
    if how == "done":
        check_explanation(folder, err)


def check_explanation(folder, said: str) -> None:
    """Of a real run: each step sleeps 20 ms before its forward pass; nothing of the time is lost or counted twice."""
    told = subprocess.run([program(), "explain", str(folder), "--json"], capture_output=True, text=True, timeout=60, env=environment())
    assert told.returncode == 0, told.stderr
    why = json.loads(told.stdout)
    assert why["members"] == 2 and why["steps"] == 6
    assert abs(why["computing"] + sum(cause["share"] for cause in why["causes"]) - 1) < 1e-9, why
    assert sum(cause["seconds"] for cause in why["causes"] if cause["cause"] in ("loading", "pauses")) >= 5 * 0.02, why
    assert {"start_up", "optimizer"} <= {cause["cause"] for cause in why["causes"]}, why
    assert f"shoal: {why['headline']}" in said
