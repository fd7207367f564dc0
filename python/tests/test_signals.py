"""USR1 and TERM while training: at one step everywhere the state is saved, and the run ends or goes on."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import safetensors.torch

import shoal
import tiny
from pool import launch
from shoal import signals
from shoal.train import keep
from shoal.train.order import Order
from test_train import data  # noqa: F401  a fixture

PATIENCE = 100.0


def due_steps(told, at):
    """The steps after which checkpoint_due() is true, where member `told` is sent USR1 in the middle of step `at`."""
    net, optimizer = tiny.wrap(tiny.model())
    due = []
    for step in range(6):
        optimizer.zero_grad()
        loss = tiny.loss(net, step, shoal.rank())
        if shoal.rank() in told and step == at:
            os.kill(os.getpid(), signal.SIGUSR1)
        loss.backward()
        optimizer.step()
        if shoal.checkpoint_due():
            due.append(step)
    return due


@pytest.mark.parametrize("told", [[1], [0, 2]])
def test_usr1_makes_a_checkpoint_due_once_and_at_the_same_step_everywhere(pool, told):
    everybody = pool(3).run(due_steps, told, 2)
    assert everybody == [everybody[0]] * 3
    assert everybody[0] in ([2], [3])  # whether the step had been announced when the signal came


def test_alone_it_is_due_at_the_next_call():
    shoal.init()
    assert not shoal.checkpoint_due()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert shoal.checkpoint_due() and not shoal.checkpoint_due()


ENDED = """
import os, signal, torch, shoal, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(tiny.model())
step = 0
while True:
    step += 1
    tiny.step(net, optimizer, step, shoal.rank())
    if shoal.rank() == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    if shoal.checkpoint_due():
        shoal.save("state", net, optimizer, step=step)
        print("saved", step, flush=True)
"""


def test_term_to_one_member_of_a_script_saves_on_all_and_ends_them_with_143(tmp_path):
    process = launch(2, [sys.executable, "-c", ENDED], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, err
    assert sorted(out.splitlines()) == ["[0] saved 4", "[1] saved 4"]
    assert "Traceback" not in err and (tmp_path / "state" / "index.json").exists()


UNWRAPPED = """
import os, signal, shoal
for step in range(6):
    if shoal.rank() == 1 and step == 2:
        os.kill(os.getpid(), signal.SIGUSR1)
    if shoal.rank() == 0 and step == 4:
        os.kill(os.getpid(), signal.SIGTERM)
    if shoal.checkpoint_due():
        print("due", step, flush=True)
"""


def test_without_data_parallel_members_ask_each_other(tmp_path):
    process = bounded(launch(2, [sys.executable, "-c", "import shoal; shoal.checkpoint_due()\n" + UNWRAPPED], cwd=tmp_path,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    out, err = process.communicate()
    assert process.returncode == 143, err
    assert sorted(out.splitlines()) == [f"[{rank}] due {step}" for rank in (0, 1) for step in (2, 4)]


def test_a_forked_child_ends_at_term_and_does_not_mind_usr1():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)
    signals.listen(signal.SIGTERM, signal.SIGUSR1)
    child = multiprocessing.get_context("fork").Process(target=idle, daemon=True)
    child.start()
    try:
        os.kill(child.pid, signal.SIGUSR1)
        child.terminate()
        child.join(PATIENCE)
        assert child.exitcode == -signal.SIGTERM
    finally:
        child.kill()
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGUSR1, before[1])


def idle():
    while True:
        time.sleep(0.01)


CANNOT_SAVE = """
import shoal, tiny
net, optimizer = tiny.wrap(tiny.model())
checkpoints = shoal.Checkpoints("kept")
open("kept/step-00000001", "w").close()  # a file where the folder should be
step = 0
while not shoal.checkpoint_due():
    step += 1
    tiny.step(net, optimizer, step, shoal.rank())
    if step == 1:
        print("up", flush=True)
checkpoints.save(1, net)
shoal.checkpoint_due()
"""


def test_a_run_that_was_told_by_term_and_could_not_save_ends_with_the_failure_and_its_line(tmp_path):
    process = bounded(launch(2, [sys.executable, "-c", CANNOT_SAVE], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    assert sorted(process.stdout.readline() for _ in range(2)) == ["[0] up\n", "[1] up\n"]
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 1, err
    *_, ended, line = err.splitlines()
    assert ended == "shoal: ended by TERM; every member has ended"
    assert "failed first: exit status 1: shoal: " in line and f"{tmp_path}/kept/step-00000001: cannot be made: " in line


FAILS = """
import os, signal, sys, torch, shoal

def train():
    net = torch.nn.Linear(2, 3)
    checkpoints = shoal.Checkpoints("kept")
    open("kept/step-00000001", "w").close()  # a file where the folder should be
    if "told" in sys.argv:
        shoal.checkpoint_due()
        os.kill(os.getpid(), signal.SIGTERM)
        assert shoal.checkpoint_due()
    checkpoints.save(1, net)

train()
if "told" in sys.argv:
    shoal.checkpoint_due()
"""


@pytest.mark.parametrize("how", ["told", "done"])
def test_a_process_whose_last_save_failed_has_failed(tmp_path, how):
    ended = subprocess.run([sys.executable, "-c", FAILS, how], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(f"shoal: {tmp_path}/kept/step-00000001: cannot be made: "), ended.stderr


LOST = """
import os, signal, shoal, tiny
net, optimizer = tiny.wrap(tiny.model())
checkpoints = shoal.Checkpoints("kept")
shoal.session.current().gather(b"", "everybody is there")
if shoal.rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
checkpoints.save(1, net, optimizer)
checkpoints.flush()
"""


def test_who_waits_for_the_part_of_a_lost_member_hears_of_the_loss(tmp_path):
    process = bounded(launch(2, [sys.executable, "-c", LOST], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    _, err = process.communicate()
    assert process.returncode == 3, err
    assert any(line.startswith("[0] shoal: rank 1 ") and "was lost" in line for line in err.splitlines()), err
    assert list((tmp_path / "kept").glob("*/index.json")) == []


# --- shoal train


def started(folder, images, *flags, members=2):
    command = [sys.executable, "-m", "shoal.train", "lenet", "--data", str(images), "--batch", "16", "--checkpoint", str(folder), *flags]
    return bounded(launch(members, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


def bounded(process):
    """Whatever waits for its output ends, because it does."""
    end = threading.Timer(2 * PATIENCE, process.kill)
    end.daemon = True
    end.start()
    return process


def finished(process, status=0):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, err
    return err


def wait_for(what, process):
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise AssertionError(process.communicate()[1])
        time.sleep(0.01)
    return found


def steps_in(folder):
    return sorted(int(path.parent.name.removeprefix("step-")) for path in folder.glob("step-*/index.json"))


def tensors_of(folder):
    index = json.loads((folder / "index.json").read_text())
    files = {name: safetensors.torch.load_file(folder / name) for name in set(index["weight_map"].values())}
    return [files[file][name] for name, file in sorted(index["weight_map"].items())]


def test_training_saves_on_usr1_ends_with_143_on_term_and_goes_on_to_the_same_bits(data, tmp_path):  # noqa: F811
    kept, reference = tmp_path / "kept", tmp_path / "reference"
    process = started(kept, data, "--epochs", "100000", "--every", "1000000")
    wait_for(lambda: "step" in (process.stderr.readline() or "gone"), process)  # members listen from the first step on
    process.send_signal(signal.SIGUSR1)
    first = wait_for(lambda: steps_in(kept), process)
    process.send_signal(signal.SIGTERM)
    assert finished(process, 143).endswith("shoal: ended by TERM; every member has ended\n")
    last = steps_in(kept)[-1]
    assert last > first[0]

    total = ["--epochs", "100000", "--steps", str(last + 7)]
    assert f"going on after {last}" in finished(started(kept, data, *total, "--resume"))
    finished(started(reference, data, *total))
    assert steps_in(kept)[-1] == steps_in(reference)[-1] == last + 7
    name = f"step-{last + 7:08d}"
    assert tiny.equal(tensors_of(kept / name), tensors_of(reference / name))


@pytest.mark.parametrize("changed, line", [
    ({}, "--checkpoint: the folder holds the checkpoints of another run (--resume goes on from there; or name another folder)"),
    ({"resume": True, "seed": 2}, "--resume: the checkpoint was made with seed 1, this run has 2"),
])
def test_flags_that_would_mix_two_runs_are_refused(tmp_path, changed, line):
    shoal.init()
    net, optimizer = tiny.wrap(tiny.model())
    order = Order(10, 2, 1, seed=1, here=shoal.session.current())
    flags = {"checkpoint": tmp_path, "every": 1, "resume": False, "model": "lenet", "seed": 1}
    keep.Keeper(types.SimpleNamespace(**flags), net, optimizer, order).after(1, last=True)
    shoal.flush()
    with pytest.raises(shoal.Error) as refused:
        keep.Keeper(types.SimpleNamespace(**flags | changed), net, optimizer, order).begin()
    assert str(refused.value) == line and refused.value.exit_code == 2


def test_checkpoints_that_a_script_has_made_are_refused(tmp_path):
    shoal.init()
    net, optimizer = tiny.wrap(tiny.model())
    shoal.Checkpoints(tmp_path).save(1, net, optimizer, step=1)
    shoal.flush()
    order = Order(10, 2, 1, seed=1, here=shoal.session.current())
    flags = types.SimpleNamespace(checkpoint=tmp_path, every=1, resume=True, model="lenet", seed=1)
    with pytest.raises(shoal.Error) as refused:
        keep.Keeper(flags, net, optimizer, order).begin()
    assert str(refused.value) == "--checkpoint: the checkpoints in this folder were not made by shoal train (name another folder)"
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("count, name", [("SLURM_RESTART_COUNT", "SLURM_JOB_ID"), ("TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID")])
def test_a_run_that_the_launcher_started_again_goes_on_by_itself_and_another_one_does_not(tmp_path, monkeypatch, count, name):
    shoal.init()
    monkeypatch.setenv(name, "7")
    net, optimizer = tiny.wrap(tiny.model())
    order = Order(10, 2, 1, seed=1, here=shoal.session.current())
    flags = types.SimpleNamespace(checkpoint=tmp_path, every=1, resume=False, model="lenet", seed=1)
    assert keep.Keeper(flags, net, optimizer, order).begin() == 0
    order.next()
    keep.Keeper(flags, net, optimizer, order).after(1, last=True)
    shoal.flush()
    monkeypatch.setenv(count, "1")
    order = Order(10, 2, 1, seed=1, here=shoal.session.current())
    assert keep.Keeper(flags, net, optimizer, order).begin() == 1 and len(order) == 4
    monkeypatch.setenv(name, "8")
    with pytest.raises(shoal.Error, match="the folder holds the checkpoints of another run"):
        keep.Keeper(flags, net, optimizer, order).begin()


def begun_again(folder, agents):
    """The steps that a restarted run has behind it on this member; its agent is one of `agents`, of which the last alone counted a restart."""
    os.environ.update({"TORCHELASTIC_RUN_ID": agents[shoal.rank()], "TORCHELASTIC_RESTART_COUNT": str(shoal.rank())})
    try:
        net, optimizer = tiny.wrap(tiny.model())
        order = Order(20, 2, 1, seed=1, here=shoal.session.current())
        flags = types.SimpleNamespace(checkpoint=folder, every=1, resume=False, model="lenet", seed=1)
        keeper = keep.Keeper(flags, net, optimizer, order)
        taken = keeper.begin()
        order.next()
        keeper.after(taken + 1, last=True)
        return taken
    finally:
        del os.environ["TORCHELASTIC_RUN_ID"], os.environ["TORCHELASTIC_RESTART_COUNT"]


def test_a_restart_that_one_of_two_agents_counts_is_one_also_where_the_other_has_rank_0(pool, tmp_path):
    assert pool(2).run(begun_again, str(tmp_path), ["a", "b"]) == [0, 0]
    assert pool(2).run(begun_again, str(tmp_path), ["b", "a"]) == [1, 1]


@pytest.mark.parametrize("members", [1, 2])
def test_images_are_taken_in_the_same_order_after_a_pause(members):
    def orders(rank):
        return [Order(23, 3, 4, seed=5, here=types.SimpleNamespace(rank=rank, size=members)) for _ in range(2)]

    for rank in range(members):
        whole, _ = orders(rank)
        taken = [whole.next().tolist() for _ in range(len(whole))]
        assert len(taken) == 4 * (23 // (3 * members))
        for stop in range(len(taken)):
            first, second = orders(rank)
            for _ in range(stop):
                first.next()
            second.go_to(first.place())
            assert [second.next().tolist() for _ in range(len(second))] == taken[stop:]


def test_a_worker_that_torchrun_starts_again_goes_on_by_itself(data, tmp_path):  # noqa: F811
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1",
               "-m", "shoal.train", "lenet", "--data", str(data), "--batch", "16", "--checkpoint", str(kept), "--every", "20", "--epochs", "100000"]
    process = bounded(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}))
    wait_for(lambda: steps_in(kept), process)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(children[-1]), signal.SIGKILL)
    line = wait_for(lambda: "going on after" in (text := process.stderr.readline()) and text, process)
    at = int(line.split("going on after")[1])
    assert at >= 20 and at % 20 == 0
    process.terminate()
    process.communicate(timeout=PATIENCE)
