"""`shoal run --on-peer-lost rejoin`: a process is started in place of a member that is lost, takes over the state of the others, and the step is
taken by all. In the end nothing tells the run from one that nobody disturbed."""

import json
import os
import signal
import subprocess
import sys

import pytest
import safetensors.torch
import torch

import tiny_images
from pool import environment, program
from ssh_hosts import SshHosts
from ssh_hosts import installed as ssh_installed

SCRIPT = """
import hashlib, json, os, signal, sys, threading
import torch, shoal

plan, steps, faults = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])

def fault(where, step):
    # Each fault once, whoever has this rank then.
    for rank, at, moment, number in faults:
        if (rank, at, moment) != (shoal.rank(), step, where.split(":")[0]):
            continue
        try:
            open(f"fault-{rank}-{at}-{moment}", "x").close()
        except FileExistsError:
            continue
        strike = lambda: os.kill(os.getpid(), number)
        threading.Timer(0.002, strike).start() if moment == "backward" else strike()

def batch(step, rank):
    draw = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(4 + rank, 40, generator=draw)
    return x, x[:, :3].sum(1, keepdim=True)

shoal.init()
if "SHOAL_GENERATION" in os.environ:
    fault("arriving", 0)
torch.set_num_threads(1)
torch.manual_seed(shoal.rank())
model = torch.nn.Sequential(torch.nn.Linear(40, 200), torch.nn.BatchNorm1d(200), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(200, 200),
                            torch.nn.Tanh(), torch.nn.Linear(200, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model, optimizer = shoal.data_parallel(model, optimizer, plan=plan)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.7)
fault("built", 0)
state = shoal.State(model, optimizer, step=0, losses=[], schedule=schedule)
while state.step < steps:
    fault("begin", state.step)
    torch.manual_seed(100 * state.step + shoal.rank())
    x, y = batch(state.step, shoal.rank())
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    fault("backward", state.step)
    loss.backward()
    fault("step", state.step)
    optimizer.step()
    fault("stepped", state.step)
    schedule.step()
    state.losses.append(state.step)
    state.step += 1
bits = b"".join(t.detach().numpy().tobytes() for t in model.state_dict().values())
print("told", json.dumps([hashlib.sha256(bits).hexdigest(), state.losses, shoal.members(), schedule.get_last_lr()]), flush=True)
"""

KILL, STOP = 9, 19


def run(tmp_path, faults=(), plan="ring", members=3, steps=12, options=(), script=SCRIPT, expect=0, variables=None):
    folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    (folder / "train.py").write_text(script)
    command = [program(), "run", "-n", str(members), "--on-peer-lost", "rejoin", *options, "--", sys.executable, "train.py", plan, str(steps), json.dumps(faults)]
    ended = subprocess.run(command, cwd=folder, env={**environment(), "OMP_NUM_THREADS": "1", **(variables or {})}, capture_output=True, text=True, timeout=200)
    said = ended.stdout + ended.stderr
    assert ended.returncode == expect, said
    return [json.loads(line.split("told ")[1]) for line in ended.stdout.splitlines() if "told " in line], said


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What members tell of a run without faults, and its plan: by this one all others here have the same bits."""
    place = tmp_path_factory.mktemp("undisturbed")
    told, _ = run(place)
    plan, = place.glob("run-0/runs/*/plan.json")
    assert len(told) == 3 and all(one == told[0] for one in told)
    return told[0], str(plan)


def expect_the_same(tmp_path, undisturbed, faults):
    course, plan = undisturbed
    told, said = run(tmp_path, faults, plan)
    assert told == 3 * [course], said
    assert said.count("; another is started in its place") == len(faults)


FAULTS = {
    "backward, step": [(1, 4, "backward", KILL), (2, 8, "step", KILL)],
    "rank 0, two at once": [(0, 3, "step", KILL), (1, 7, "begin", KILL), (2, 7, "begin", KILL)],
    "who comes, as it arrives and in its step": [(1, 4, "step", KILL), (1, 0, "arriving", KILL), (1, 5, "backward", KILL)],
    "one stands still": [(2, 5, "step", STOP)],
}


SELDOM = ("who comes, as it arrives and in its step", "one stands still", "rank 0, two at once")


@pytest.mark.parametrize("faults", [pytest.param(each, id=name, marks=[pytest.mark.slow] if name in SELDOM else []) for name, each in FAULTS.items()])
def test_who_is_lost_comes_back_and_nothing_is_different(tmp_path, undisturbed, faults):
    expect_the_same(tmp_path, undisturbed, faults)


LOST_WHEN_OTHERS_HAVE_ENDED = """
import pathlib, time
if shoal.rank() > 0:
    pathlib.Path(f"pid-{shoal.rank()}.new").write_text(str(os.getpid()))
    os.rename(f"pid-{shoal.rank()}.new", f"pid-{shoal.rank()}")
else:
    def has_ended(file):  # the launcher keeps it as a zombie; its other threads go last
        process = pathlib.Path("/proc") / file.read_text() if file.exists() else None
        return process and len(os.listdir(process / "task")) == 1 and (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    while not all(has_ended(pathlib.Path(f"pid-{rank}")) for rank in range(1, shoal.size())):
        time.sleep(0.01)
    os.kill(os.getpid(), NUMBER)
"""


@pytest.mark.parametrize("number, by, line", [(KILL, KILL, "nobody was started in a lost member's place, since others had ended"),
                                              (STOP, signal.SIGTERM, "rank 0 stands still (stopped), and the others have ended without it")])
def test_who_is_lost_when_others_have_ended_has_not_done_its_work(tmp_path, number, by, line):
    """Rank 0, say, which saves after the last step: nobody can come in its place any more, and the run is no success."""
    told, said = run(tmp_path, members=2, steps=3, script=SCRIPT + LOST_WHEN_OTHERS_HAVE_ENDED.replace("NUMBER", str(number)), expect=128 + by)
    assert len(told) == 2 and f"rank 0 failed first: killed by signal {by:d}" in said and line in said


@pytest.mark.slow
@pytest.mark.skipif(not ssh_installed(), reason="needs root, network namespaces and openssh-server")
def test_on_hosts_by_ssh_who_comes_is_started_where_the_lost_one_was(tmp_path, undisturbed):
    course, plan = undisturbed
    (tmp_path / "train.py").write_text(SCRIPT)
    faults = [(0, 3, "step", KILL), (2, 7, "begin", KILL)]
    with SshHosts(tmp_path, 3) as hosts:
        ended = hosts.on(0, [program(), "run", "--hosts", "host0,host1,host2", "--on-peer-lost", "rejoin", "--", sys.executable, "train.py", plan, "12", json.dumps(faults)],
                         OMP_NUM_THREADS="1", PYTHONPATH=environment()["PYTHONPATH"])
    said = ended.stdout + ended.stderr
    assert ended.returncode == 0, said
    assert [json.loads(line.split("told ")[1]) for line in ended.stdout.splitlines() if "told " in line] == 3 * [course], said
    assert all(f"rank {rank} (host{rank}) was lost" in said for rank, _, _, _ in faults), said
    assert said.count("; another is started in its place") == len(faults), said


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["built", "begin", "stepped"])
def test_before_the_first_step_and_right_after_one(tmp_path, undisturbed, moment):
    expect_the_same(tmp_path, undisturbed, [(1, 0, moment, KILL)])


@pytest.mark.slow
def test_twenty_kills_in_an_epoch(tmp_path):
    moments = ["begin", "backward", "step", "stepped"]
    course, _ = run(tmp_path, members=4, steps=45)
    plan, = tmp_path.glob("run-0/runs/*/plan.json")
    told, said = run(tmp_path, [(i * 7 % 4, 2 * i + 1, moments[i % 4], KILL) for i in range(20)], str(plan), members=4, steps=45)
    assert told == course, said


def test_by_a_plan_that_is_being_measured(tmp_path):
    """The loss comes before and after the plan is chosen: steps go on in lockstep, on all members with the same bits."""
    told, said = run(tmp_path, [(1, 1, "step", KILL), (0, 3, "begin", KILL)], "auto")
    assert told == 3 * [told[0]], said
    assert told[0][1] == list(range(12)) and told[0][2] == [0, 1, 2]


def test_a_member_that_dies_each_time_is_not_replaced_for_ever(tmp_path):
    dies = SCRIPT.replace('fault("begin", state.step)', "os.kill(os.getpid(), 9) if shoal.rank() == 1 and state.step == 2 else None")
    _, said = run(tmp_path, script=dies, options=["--restarts", "2"], expect=137)
    assert said.count("another is started in its place") == 2
    assert "members were replaced 2 times, which is the most (--restarts)" in said


def test_a_script_without_a_state_is_told_so(tmp_path):
    _, said = run(tmp_path, script=SCRIPT.replace("shoal.State(model, optimizer, step=0, losses=[], schedule=schedule)", "type('S', (), {})(); state.step, state.losses = 0, []"),
                  expect=2)
    assert "--on-peer-lost rejoin: nothing says what those take over who come in place of lost members (make a shoal.State of model and optimizer before the first step)" in said
    assert "Traceback" not in said


def test_what_would_be_lost_with_a_member_is_refused(tmp_path):
    _, said = run(tmp_path, plan="local:4", expect=2)
    assert "plan: by local:4 members have state of their own, which is lost with them (run with --on-peer-lost fail)" in said


def test_only_shoal_run_starts_others(tmp_path):
    at = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "SHOAL_ON_PEER_LOST": "rejoin", "SHOAL_JOIN_TIMEOUT": "2"}
    ended = subprocess.run([sys.executable, "-c", "import shoal; shoal.init()"], cwd=tmp_path, env={**environment(), **at}, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 2 and "only `shoal run` starts others in place of lost members, and these were started by torchrun" in ended.stderr


def test_alone_a_state_is_a_namespace():
    import shoal
    model = torch.nn.Linear(2, 1)
    state = shoal.State(model, torch.optim.SGD(model.parameters(), lr=0.1), step=3)
    state.step += 1
    assert state.step == 4
    with pytest.raises(shoal.Error, match="do not begin with an underscore"):
        state._hidden = 1


def test_the_program_trains_on_and_saves(tmp_path):
    """shoal train with checkpoints: members are killed, one while it saves; what is kept in the end is what an undisturbed run keeps. With the largest seed, of
    which each step draws its own."""
    place = tmp_path / "data"
    place.mkdir()
    tiny_images.write(place)
    kept, plan = {}, "ring"
    for name, kills in {"undisturbed": [], "disturbed": [(1, 5), (0, 11), (2, 12)]}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(KILLER.replace("KILLS", repr(kills)))
        command = [program(), "train", "lenet", "-n", "3", "--on-peer-lost", "rejoin", "--plan", plan, "--data", str(place), "--batch", "8",
                   "--steps", "20", "--checkpoint", "kept", "--every", "6", "--json", "--seed", str((1 << 64) - 1)]
        ended = subprocess.run(command, cwd=folder, env={**environment(), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=200)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert (ended.stdout + ended.stderr).count("another is started in its place") == len(kills)
        steps = sorted(os.listdir(folder / "kept"))
        plan = str(next(folder.glob("runs/*/plan.json")))
        kept[name] = steps, values_in(folder / "kept" / steps[-1])
    assert kept["disturbed"] == kept["undisturbed"]


KILLER = """
import os, sys
if "shoal.train" in " ".join(sys.orig_argv):
    import torch
    steps = 0
    plain = torch.optim.Adam.zero_grad
    def zero_grad(self, *rest, **more):
        import shoal
        state = next((s for s in __import__("shoal.state").state._states), None)
        for rank, step in KILLS:
            if state is not None and shoal.rank() == rank and state.step == step:
                try:
                    open(f"killed-{rank}-{step}", "x").close()
                except FileExistsError:
                    continue
                os.kill(os.getpid(), 9)
        return plain(self, *rest, **more)
    torch.optim.Adam.zero_grad = zero_grad
"""


def values_in(checkpoint):
    """Of model, optimizer and each member's own, by name."""
    values = {}
    for part in checkpoint.glob("*.safetensors"):
        for name, value in safetensors.torch.load_file(part).items():
            if name.startswith("own.numpy"):  # which nobody seeds here
                continue
            values[part.name.split("-of-")[0] if name.startswith("own") else "", name] = value.tolist()
    return values
