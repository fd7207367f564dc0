"""Around local steps: bytes, saved plans, checkpoints, signals, and a member that is killed."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from torch import nn

import shoal
import tiny
from players import Wide, adam, take_step, trained
from pool import launch
from shoal import session


def bytes_sent(plan, steps):
    """Of this member in so many steps and an end; and the plan."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 350), *[nn.Linear(350, 350) for _ in range(3)], nn.Linear(350, 3))
    net, optimizer = shoal.data_parallel(net, tiny.sgd(net), plan)
    for step in range(10):  # links are measured, the plan is chosen
        take_step(net, optimizer, step, shoal.rank())
    net.flush()
    before = sum(link["sent"] for link in session.current().links())
    for step in range(10, 10 + steps):
        take_step(net, optimizer, step, shoal.rank())
    net.flush()
    return sum(link["sent"] for link in session.current().links()) - before, json.loads(net.plan)


@pytest.mark.parametrize("plan, rounds, at_the_end", [("local:4", 4, []), ("diloco:9:3", 2, [0, 1])])
def test_a_member_sends_the_model_once_a_round_and_at_the_end_what_has_changed_since(pool, plan, rounds, at_the_end):
    for sent, made in pool(2).run(bytes_sent, plan, 16 if plan == "local:4" else 18):
        whole = sum(unit["bytes"] for unit in made["units"])
        rest = sum(unit["bytes"] for unit in made["units"] if unit.get("turn", 0) in at_the_end)
        assert sent == pytest.approx(rounds * whole + rest, rel=0.01)


def other_plans(_):
    net = tiny.model()
    try:
        shoal.data_parallel(net, tiny.sgd(net), f"local:{4 + shoal.rank()}")
    except shoal.Error as error:
        return error.code, str(error)


def test_members_with_other_rounds_are_told_apart(pool):
    for code, line in pool(2).run(other_plans, 0):
        assert code == "mismatch" and "local:4" in line and "local:5" in line


def replayed(plan, path, steps):
    first = trained(plan, steps)
    if shoal.rank() == 0:
        with open(path, "w") as file:
            json.dump(first[2], file)
    session.current().gather(b"", "the file")
    again = trained(path, steps)
    return tiny.equal(first[1], again[1]), first[2] == again[2]


@pytest.mark.parametrize("plan", ["local:3", "diloco:4:2"])
def test_a_saved_plan_gives_the_same_bits(pool, tmp_path, plan):
    assert pool(2).run(replayed, plan, str(tmp_path / "plan.json"), 9) == [(True, True)] * 2


# --- checkpoints, signals, failures


def interrupted(plan, folder, stop, end, inner, kind):
    make = tiny.Normalised if kind == "buffers" else Wide

    def train(net, optimizer, numbers):
        for step in numbers:
            take_step(net, optimizer, step, shoal.rank())

    def everything(net, optimizer):
        net.flush()
        return tiny.values(net) + [v.clone() for state in optimizer.state_dict()["state"].values() for v in state.values() if v is not None]

    net = make()
    net, optimizer = shoal.data_parallel(net, inner(net), plan)
    train(net, optimizer, range(stop))
    shoal.save(folder, net, optimizer, step=stop)
    train(net, optimizer, range(stop, end))
    expected = everything(net, optimizer)
    net.release()

    net = make()
    nn.init.zeros_(next(net.parameters()))
    net, optimizer = shoal.data_parallel(net, inner(net), plan)
    assert shoal.load(folder, net, optimizer) == {"step": stop}
    train(net, optimizer, range(stop, end))
    return tiny.equal(everything(net, optimizer), expected)


@pytest.mark.parametrize("plan, stop", [("local:4", 6), ("local:4", 8), ("diloco:3", 5), ("diloco:6:3", 9), ("diloco:6:2,*=direct", 10),
                                        ("diloco:4:2,*=int8", 7)])
def test_a_resumed_run_has_the_bits_of_one_that_went_on(pool, tmp_path, plan, stop):
    for inner in (tiny.sgd, adam):
        assert pool(3).run(interrupted, plan, str(tmp_path / inner.__name__), stop, stop + 9, inner, "plain") == [True] * 3
    assert pool(2).run(interrupted, plan, str(tmp_path / "buffers"), stop, stop + 9, adam, "buffers") == [True] * 2


def resumed_by(plan, other, folder):
    net, optimizer = shoal.data_parallel(net := tiny.model(), tiny.sgd(net), plan)
    for step in range(9):
        take_step(net, optimizer, step, shoal.rank())
    shoal.save(folder, net, optimizer)
    net.release()
    net, optimizer = shoal.data_parallel(net := tiny.model(), tiny.sgd(net), other)
    shoal.load(folder, net, optimizer)
    begun = tiny.values(net)
    for step in range(9, 27):
        take_step(net, optimizer, step, shoal.rank())
    net.flush()
    return begun, tiny.values(net)


@pytest.mark.parametrize("plan, other", [("diloco:16:4", "local:8"), ("local:4", "diloco:8:4")])
def test_a_run_by_other_rounds_goes_on_from_the_common_values(pool, tmp_path, plan, other):
    results = pool(2).run(resumed_by, plan, other, str(tmp_path / "it"))
    for at in range(2):
        assert tiny.equal(results[0][at], results[1][at])
    assert not tiny.equal(results[0][0], results[0][1])


def saves_without_a_trace(plan, folder):
    def run(saves):
        net = tiny.model()
        net, optimizer = shoal.data_parallel(net, tiny.sgd(net), plan)
        for step in range(11):
            take_step(net, optimizer, step, shoal.rank())
            if saves and step >= 3:
                shoal.save(folder, net, optimizer)
        return tiny.values(net)

    return tiny.equal(run(False), run(True))


@pytest.mark.parametrize("plan", ["local:4,*=direct", "diloco:6:3,*=direct"])
def test_saving_changes_nothing(pool, tmp_path, plan):
    assert pool(2).run(saves_without_a_trace, plan, str(tmp_path / "it")) == [True] * 2


def save_some(plan, folder):
    net = tiny.model()
    net, optimizer = shoal.data_parallel(net, adam(net), plan)
    for step in range(7):
        take_step(net, optimizer, step, shoal.rank())
    shoal.save(folder, net, optimizer)
    return list(net.state_dict_alike().values())


def load_them(plan, folder):
    net = tiny.model(seed=3)
    net, optimizer = shoal.data_parallel(net, adam(net), plan)
    shoal.load(folder, net, optimizer)
    values = tiny.values(net)
    for step in range(6):
        take_step(net, optimizer, step, shoal.rank())
    net.flush()
    return values, tiny.values(net)


@pytest.mark.parametrize("after", ["local:4", "auto"])
def test_another_number_of_members_goes_on_from_the_last_synchronisation(pool, tmp_path, after):
    saved = pool(3).run(save_some, "diloco:4", str(tmp_path / "it"))
    for values, end in pool(2).run(load_them, after, str(tmp_path / "it")):
        assert tiny.equal(values, saved[0]) and not tiny.equal(values, end)
    assert all(tiny.equal(theirs, saved[0]) for theirs in saved)


def due_steps(plan, told, at):
    net = tiny.model()
    net, optimizer = shoal.data_parallel(net, tiny.sgd(net), plan)
    due = []
    for step in range(1, 21):
        if shoal.rank() == told and step == at:
            os.kill(os.getpid(), signal.SIGUSR1)
        take_step(net, optimizer, step, shoal.rank())
        if shoal.checkpoint_due():
            due.append(step)
    net.release()
    return due


@pytest.mark.parametrize("plan, due", [("local:5", [10]), ("diloco:8:2", [12])])  # there a fragment leaves after step 8 and lands with 12
def test_a_signal_is_answered_after_the_next_synchronisation_everywhere(pool, plan, due):
    assert pool(3).run(due_steps, plan, 1, 7) == [due] * 3


DYING = """
import os, signal, sys
import torch, shoal, tiny
torch.set_num_threads(1)
net = tiny.model()
net, optimizer = shoal.data_parallel(net, tiny.sgd(net), sys.argv[1])
try:
    for step in range(1, 10_000):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        if shoal.rank() == 1 and step == 11:
            os.kill(os.getpid(), signal.SIGKILL)
        before = [p.detach().clone() for p in net.parameters()]
        optimizer.step()
except shoal.PeerLost:
    for parameter, was in zip(net.parameters(), before):
        was.add_(optimizer.state[parameter]["momentum_buffer"], alpha=-0.1)
    print("SAW", step, torch.equal(torch.cat([p.flatten() for p in net.parameters()]), torch.cat([p.flatten() for p in before])), flush=True)
    raise
"""


# In turns the fragment that left after step 10 may have arrived before the member was killed.
@pytest.mark.parametrize("plan, seen", [("local:4", [["12", "True"]]), ("diloco:6:3", [["12", "True"], ["12", "False"], ["14", "True"]])])
def test_a_member_that_is_killed_in_a_round_is_named_and_the_others_keep_their_own_steps(plan, seen):
    process = launch(3, [sys.executable, "-c", DYING, plan], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3 and "Traceback" not in err, err
    saw = [line.split("SAW ")[1].split() for line in out.splitlines() if "SAW" in line]
    assert len(saw) == 2 and all(one in seen for one in saw)
    for rank in (0, 2):
        assert any(line.startswith(f"[{rank}] shoal: rank 1 (") and "was lost: " in line for line in err.splitlines()), err
