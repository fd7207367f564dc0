"""`shoal run --on-peer-lost regrow`: those who are left train on with fewer; a process that is started in a lost member's place joins them between two steps, with their
state. All members then have the same bits, which are those of one process that takes the same steps with the same contributors."""

import itertools
import json
import subprocess
import sys

import pytest
import torch

from pool import environment, program
from test_rejoin import KILL, STOP

# Who took which step is in took-RANK, line by line; who comes joins and is idle until the others have taken step `comes`: they do not wait for it. Training ends some steps after all are there again.
SCRIPT = """
import hashlib, json, os, pathlib, signal, sys, time
import torch, shoal
from step import batch, model_of

plan, comes, last, faults = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
came = "SHOAL_GENERATION" in os.environ

def fault(moment, step):
    for rank, at, when, number in faults:
        if (rank, when) == (int(os.environ["SHOAL_RANK"]), moment) and (at == step or came and at == "came"):
            try:
                open(f"fault-{rank}-{at}-{when}", "x").close()
            except FileExistsError:
                continue
            os.kill(os.getpid(), number)

fault("starting", None)
shoal.init()
fault("joined", None)
while came and not os.path.exists("go"):
    time.sleep(0.01)
torch.set_num_threads(1)
model = model_of()
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.5)
model, optimizer = shoal.data_parallel(model, optimizer, plan=plan)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.99)
fault("built", None)
if came:
    followed = shoal.around_steps.rule_alone
    shoal.around_steps.rule_alone = lambda optimizer: (fault("following", None), followed(optimizer))[1]
state = shoal.State(model, optimizer, step=0, whole=0, schedule=schedule)
began = state.step
took = open(f"took-{shoal.rank()}", "a")
while state.whole < 5:
    fault("begin", state.step)
    x, y = batch(shoal.rank(), state.step)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    fault("backward", state.step)
    loss.backward()
    optimizer.step()
    print(state.step, file=took, flush=True)
    fault("stepped", state.step)
    if shoal.session.current().feeds:
        fault("feeds", "feeds")
    schedule.step()
    state.step += 1
    state.whole = state.whole + 1 if len(shoal.members()) == shoal.size() and state.step > last else 0
    if state.step == comes and not came:
        pathlib.Path("go").touch()
bits = b"".join(t.detach().numpy().tobytes() for t in model.state_dict().values())
kept = [tensor.sum().item() for moments in optimizer.state_dict()["state"].values() for tensor in moments.values()]
print("told", json.dumps({"rank": shoal.rank(), "began": began, "followed": shoal.session.current().has_followed, "steps": state.step, "members": shoal.members(),
                          "alike": [hashlib.sha256(bits).hexdigest(), kept, schedule.get_last_lr()], "sums": [p.sum().item() for p in model.parameters()]}), flush=True)
"""

STEP = """
import torch

def batch(rank, step):
    draw = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(4 + rank, 40, generator=draw, dtype=torch.float64)
    return x, x[:, :3].sum(1, keepdim=True)

def model_of():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(40, 200), torch.nn.Tanh(), torch.nn.Linear(200, 200), torch.nn.Tanh(), torch.nn.Linear(200, 1)).double()
"""


def run(tmp_path, faults, comes, plan="ring", members=3, options=(), script=SCRIPT, expect=0):
    """What members tell at the end, by rank; who took each step; and all that was said."""
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "step.py").write_text(STEP)
    last = max(at for _, at, _, _ in faults if isinstance(at, int))
    command = [program(), "run", "-n", str(members), "--on-peer-lost", "regrow", *options, "--", sys.executable, "train.py", plan, str(comes), str(last), json.dumps(faults)]
    ended = subprocess.run(command, cwd=tmp_path, env={**environment(), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300)
    said = ended.stdout + ended.stderr
    assert ended.returncode == expect, said
    told = sorted((json.loads(line.split("told ")[1]) for line in ended.stdout.splitlines() if "told " in line), key=lambda one: one["rank"])
    took = {rank: {int(line) for line in (tmp_path / f"took-{rank}").read_text().split()} for rank in range(members) if (tmp_path / f"took-{rank}").exists()}
    return told, took, said


def replay(took, steps, more=()):
    """The same steps by one process: the sums of its parameters. more: (rank, step) of contributions beside those of members that took the step."""
    names = {}
    torch.set_num_threads(1)  # beside other tests more take longer
    exec(STEP, names)
    model = names["model_of"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.5)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.99)
    for step in range(steps):
        optimizer.zero_grad()
        parts = [names["batch"](rank, step) for rank in took if step in took[rank] or (rank, step) in more]
        samples = sum(len(x) for x, _ in parts)
        for x, y in parts:
            (torch.nn.functional.mse_loss(model(x), y) * len(x) / samples).backward()
        optimizer.step()
        schedule.step()
    return [p.sum().item() for p in model.parameters()]


def check(tmp_path, faults, comes, members=3, **how):
    told, took, said = run(tmp_path, faults, comes, members=members, **how)
    assert [one["rank"] for one in told] == list(range(members)), said
    steps = told[0]["steps"]
    assert all((one["steps"], one["alike"], one["members"]) == (steps, told[0]["alike"], list(range(members))) for one in told), said
    never = [rank for rank in range(members) if rank not in {rank for rank, *_ in faults}]
    assert never and all(took[rank] == set(range(steps)) and told[rank]["began"] == 0 for rank in never), said
    # It may have counted where it had left this member in time: one of these is what happened, and the same on all.
    open_ones = [(rank, at) for rank, at, moment, _ in faults if moment == "backward" and isinstance(at, int)]
    sums = [replay(took, steps, more) for n in range(len(open_ones) + 1) for more in itertools.combinations(open_ones, n)]
    assert any(told[0]["sums"] == pytest.approx(each, rel=1e-9, abs=1e-9) for each in sums), said
    return told, took, said


FAULTS = {
    "one": [(1, 4, "begin", KILL)],
    "rank 0, in backward": [(0, 4, "backward", KILL)],
    "another while it comes": [(1, 4, "stepped", KILL), (2, 8, "begin", KILL)],
    "who comes, as it starts": [(1, 4, "begin", KILL), (1, "came", "starting", KILL)],
    "who comes, when it has joined": [(1, 4, "begin", KILL), (1, "came", "joined", KILL)],
    "who comes, before it has the state": [(2, 4, "begin", KILL), (2, "came", "built", KILL)],
    "who comes, as it follows": [(1, 4, "begin", KILL), (1, "came", "following", KILL)],
    "who comes, in its first step": [(1, 4, "begin", KILL), (1, "came", "backward", KILL)],
    "who feeds it": [(1, 4, "begin", KILL), (0, "feeds", "feeds", KILL)],
}
SELDOM = ("who comes, as it starts", "who comes, before it has the state", "who comes, in its first step", "who comes, as it follows", "another while it comes")


@pytest.mark.parametrize("faults", [pytest.param(each, id=name, marks=[pytest.mark.slow] if name in SELDOM else []) for name, each in FAULTS.items()])
def test_the_others_train_on_and_who_comes_joins_them(tmp_path, faults):
    comes = 12
    told, took, said = check(tmp_path, faults, comes, members=4)
    assert said.count("; another is started in its place") == len(faults), said
    for rank, at, moment, _ in faults:
        if not isinstance(at, int):
            continue
        assert told[rank]["began"] >= comes  # it came between two steps; until then the others took each without it
        assert not took[rank] & set(range(at + (moment == "stepped"), comes)), said


def test_nobody_waits_for_the_state(tmp_path):
    """Who comes has followed the steps since it was fed: also buffers, moments, and a rate that changes; the script's own values come last."""
    script = SCRIPT.replace("model = model_of()", "model = torch.nn.Sequential(model_of(), torch.nn.BatchNorm1d(1).double())").replace("SGD(", "Adam(").replace(", momentum=0.5", "")
    assert script.count("Adam") == script.count("BatchNorm") == 1
    told, _, said = run(tmp_path, [(0, 4, "begin", KILL)], comes=12, script=script)
    assert len(told) == 3 and all(one["alike"] == told[0]["alike"] for one in told), said
    assert [one["followed"] for one in told] == [True, False, False], said


def test_what_cannot_be_followed_is_brought(tmp_path):
    """The script changes its parameters behind the optimizer's step: whoever follows the steps comes to others, which shows, and gets the state as a whole."""
    script = SCRIPT.replace("    optimizer.step()\n", "    optimizer.step()\n    [p.data.clamp_(-0.05, 0.05) for p in model.parameters()]\n")
    assert script != SCRIPT
    told, _, said = run(tmp_path, [(1, 4, "begin", KILL)], comes=12, script=script)
    assert len(told) == 3 and all(one["alike"] == told[0]["alike"] for one in told), said
    assert [one["followed"] for one in told] == [False, False, False], said


def test_by_a_plan_that_is_measured(tmp_path):
    check(tmp_path, [(1, 1, "begin", KILL)], comes=12, plan="auto")


@pytest.mark.slow
@pytest.mark.parametrize("faults", [pytest.param([(1, 4, "begin", STOP)], id="one"), pytest.param([(1, 4, "begin", KILL), (2, 8, "begin", STOP)], id="another while one comes")])
def test_one_that_stands_still(tmp_path, faults):
    check(tmp_path, faults, comes=12, members=4)


def test_a_run_that_is_over_before_anybody_came_is_a_success(tmp_path):
    told, took, said = run(tmp_path, [(1, 4, "begin", KILL)], comes=12, script=SCRIPT.replace("while state.whole < 5:", "while state.step < 30:"),
                           options=["--cold"])
    assert {0, 2} <= {one["rank"] for one in told}, said
    assert "Traceback" not in said and all(took[rank] == set(range(30)) for rank in (0, 2)), said


def test_with_nobody_in_reserve_the_others_go_on(tmp_path):
    script = SCRIPT.replace("while state.whole < 5:", "while state.step < 400:")
    told, took, said = run(tmp_path, [(1, 4, "begin", KILL), (1, "came", "starting", KILL)], comes=12, script=script, options=["--restarts", "1"])
    assert [one["rank"] for one in told] == [0, 2] and told[0]["alike"] == told[1]["alike"], said
    assert "members were replaced 1 times, which is the most (--restarts)" in said, said


def test_several_models_are_refused(tmp_path):
    script = SCRIPT.replace("state = shoal.State(", "other = model_of(); both = shoal.data_parallel(other, torch.optim.SGD(other.parameters(), lr=0.1)); state = shoal.State(")
    _, _, said = run(tmp_path, [(1, 4, "begin", KILL)], comes=12, script=script, expect=2)
    assert "shoal.State: members that come while others go on take over one model, and there are several (run with --on-peer-lost rejoin)" in said, said
    assert "Traceback" not in said
