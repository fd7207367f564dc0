"""shoal.train and the example, on a small data set of the real format."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import shoal
import tiny_images
from pool import environment, launch, program
from tensorboard_reader import curves
from shoal.train import fashion, flags

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path):
    return tiny_images.write(tmp_path)


def test_reads_images_and_labels(data):
    training, test = fashion.read(str(data))
    assert len(training) == 640 and len(test) == 64
    pixels, labels = training.batch(torch.tensor([3, 14]))
    assert pixels.shape == (2, 1, 28, 28) and labels.tolist() == [3, 4]
    assert pixels[0, 0, 10].min() > 2 and pixels[0, 0, 11].max() < 0


IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"


def cut(file: Path, keep: float) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * keep)])


@pytest.mark.parametrize("name, spoil, words", [
    (IMAGES, lambda f: f.unlink(), "no such file"),
    (IMAGES, lambda f: cut(f, 0.5), "cut short"),
    (IMAGES, lambda f: f.write_bytes(b"not gzip at all"), "damaged"),
    (IMAGES, lambda f: tiny_images.write_idx(f, (640, 28, 28), bytes(100)), "it holds only 100"),
    (IMAGES, lambda f: tiny_images.write_idx(f, (1, 28, 28), bytes(1000)), "it holds more"),
    (IMAGES, lambda f: tiny_images.write_idx(f, (640, 28, 28), b"", magic=13), "not an IDX file of bytes in 3 dimensions"),
    (IMAGES, lambda f: tiny_images.write_idx(f, (1 << 31, 1 << 20, 28), b""), "its header announces"),
    (IMAGES, lambda f: tiny_images.write_idx(f, (2, 14, 14), bytes(392)), "images of 14x14 pixels, expected 28x28"),
    (LABELS, lambda f: tiny_images.write_idx(f, (3,), bytes(3)), "3 labels for 640 images"),
    (LABELS, lambda f: tiny_images.write_idx(f, (640,), b"\x0b" * 640), "label 11, expected 0 to 9"),
    (LABELS, lambda f: (f.unlink(), f.mkdir()), "cannot be read"),
])
def test_a_spoilt_file_gives_one_line_that_names_it(data, name, spoil, words):
    spoil(data / name)
    with pytest.raises(shoal.Error) as caught:
        fashion.read(str(data))
    line = str(caught.value)
    assert line.startswith(str(data / name)) and words in line and "\n" not in line
    assert caught.value.exit_code == 2


def test_the_command_ends_with_that_line_and_exit_code_2(tmp_path):
    ended = subprocess.run([sys.executable, "-m", "shoal.train", "lenet", "--data", str(tmp_path)], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"shoal: {tmp_path}/{IMAGES}: no such file") and ended.stderr.count("\n") == 1


def test_a_wrong_flag_gives_one_line():
    ended = subprocess.run([sys.executable, "-m", "shoal.train", "lenet", "--batch", "0"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == ("shoal: shoal train: argument --batch: invalid positive int value: '0' (shoal train --help lists the flags)\n")


@pytest.mark.parametrize("words, line", [
    (["--batch", "0"], "shoal train: argument --batch: invalid positive int value: '0' (shoal train --help lists the flags)\n"),
    (["--resume"], "--resume: from which folder? (add --checkpoint DIR)\n"),
])
def test_with_members_the_line_comes_once_and_before_any_of_them_starts(tmp_path, words, line):
    ended = subprocess.run([program(), "train", "lenet", "-n", "4", *words], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", line) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words, line", [
    (["--seed", "9" * 23], f"shoal: shoal train: argument --seed: invalid seed value: '{'9' * 23}' (shoal train --help lists the flags)\n"),
    (["--resume"], "shoal: --resume: from which folder? (add --checkpoint DIR)\n"),
    (["--every", "1"], "shoal: --every: into which folder? (add --checkpoint DIR)\n"),
    (["--plan", "ps:ssp:3", "--consistency", "bsp"],
     "shoal: --consistency: --plan ps:ssp:3 says how stale parameters may be (--plan ps --consistency bsp, or --plan alone)\n"),
])
def test_flags_are_read_without_pytorch(words, line):
    """As the launching program has them read: -S leaves Python nothing to import but its own library."""
    ended = subprocess.run([sys.executable, "-S", flags.__file__, "lenet", *words], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (2, line)


@pytest.mark.parametrize("variable, words, resumes", [("1", ["--checkpoint", "c"], True), ("0", ["--checkpoint", "c"], False), ("1", [], False)])
def test_a_run_that_begins_again_goes_on_where_there_are_checkpoints(monkeypatch, variable, words, resumes):
    monkeypatch.setenv("SHOAL_RESUME", variable)
    monkeypatch.setattr(sys, "argv", ["shoal.train", "lenet", *words])
    assert flags.read().resume == resumes


def train(members, data, *arguments):
    command = [sys.executable, "-m", "shoal.train", "lenet", "--data", str(data), "--batch", "16", *arguments]
    process = launch(members, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def test_trains_and_shows_where_the_time_went(data):
    out, err = train(2, data, "--epochs", "3", "--lr", "3e-3")
    assert "61,706 parameters, 640 + 64 images, 2 members x 16, 60 steps" in err
    assert "step 60/60" in err and "images/s" in err and "hidden" in err
    assert "test accuracy" in out
    accuracy = float(out.split("test accuracy")[1].split()[0])
    assert accuracy > 0.9
    for file in ("trace", "report"):
        path = next(line for line in out.splitlines() if f"] {file} " in line).split()[2]
        assert Path(path).stat().st_size > 1000
    assert (Path(path).parent / "plan.json").exists()
    assert len([line for line in out.splitlines() if "] why     " in line]) == 1


def test_lines_for_machines_and_curves_for_tensorboard(data, tmp_path):
    out, _ = train(2, data, "--steps", "5", "--json", "--tensorboard", str(tmp_path / "board"))
    summary = json.loads(out.split("] ", 1)[1])
    assert summary["members"] == 2 and summary["steps"] == 5 and 0 <= summary["accuracy"] <= 1
    found = curves(tmp_path / "board")
    assert [step for step, _ in found["loss"]] == [1, 2, 3, 4, 5] and abs(found["loss"][-1][1] - summary["loss"]) < 1e-5
    assert len(found["test_accuracy"]) == 1 and abs(found["test_accuracy"][0][1] - summary["accuracy"]) < 1e-6
    assert {step for step, _ in found["learning_rate"]} <= {1, 2, 3, 4, 5} and found["learning_rate"][0][1] == pytest.approx(1e-3)
    for tag in ("samples_per_second", "exposed_share", "received_MB_per_second/from_rank_1"):
        assert found[tag][-1][0] == 5, found
    assert 0 <= found["exposed_share"][-1][1] <= 1


def test_by_local_steps_it_comes_together_for_the_figure_at_the_end_and_says_that_it_is_not_exact(data):
    out, err = train(2, data, "--steps", "20", "--plan", "local:8", "--lr", "3e-3")
    assert "step 20/20" in err and "test accuracy" in out
    report = next(line for line in out.splitlines() if "] report  " in line).split()[2]
    text = Path(report).read_text()
    assert "not exact: members take local steps (local:8)" in text
    assert "local steps: members came together 3 times in 20 steps" in text  # after 8, 16 and at the end
    assert "(local steps)" in text


@pytest.mark.parametrize("consistency, said", [
    ("essp:1", "parameters are served essp:1; each member's gradient is a step, at 1/sqrt 2 of the rate"),
    ("bsp:1", "each step goes on without the slowest 1 of 2 members, whose gradients for it are dropped")])
def test_parameters_are_served_at_the_age_that_is_asked_for_and_the_report_says_so(data, consistency, said):
    out, err = train(2, data, "--steps", "20", "--plan", "ps", "--consistency", consistency)
    assert "step 20/20" in err and "test accuracy" in out
    report = next(line for line in out.splitlines() if "] report  " in line).split()[2]
    assert "not exact: " + said in Path(report).read_text()


def test_by_sgd_whose_momentum_a_way_may_take_over(data):
    accuracy = [json.loads(train(2, data, "--epochs", "3", "--json", *flags)[0].split("] ", 1)[1])["accuracy"]
                for flags in (["--sgd", "0.9"], ["--sgd", "0", "--plan", "topk:0.05:0.9"])]
    assert min(accuracy) > 0.9, accuracy


@pytest.mark.parametrize("flags, line", [
    (["--sgd", "1"], "shoal: shoal train: argument --sgd: invalid momentum value: '1' (shoal train --help lists the flags)\n"),
    (["--plan", "ring", "--consistency", "ssp:3"], "shoal: --consistency: ring serves no parameters (--plan ps --consistency ssp:3)\n"),
    (["--plan", "ps", "--consistency", "late"], 'shoal: plan: no consistency is called "late"'),
])
def test_flags_that_do_not_go_together_are_refused_in_one_line(data, flags, line):
    ended = subprocess.run([sys.executable, "-m", "shoal.train", "lenet", "--data", str(data), *flags], capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stderr.startswith(line) and ended.stderr.count("\n") == 1, ended.stderr


# Of the program itself: members are forked from a process that has imported this, or import it themselves.
KILLER = """
import os, sys
if "shoal.train" in " ".join(sys.orig_argv):
    import torch
    plain, steps = torch.optim.Adam.zero_grad, 0
    def zero_grad(self, *rest, **more):
        global steps
        steps += 1
        if os.environ.get("SHOAL_RANK") == "VICTIM" and steps == MOMENT:
            os.kill(os.getpid(), 9)
        return plain(self, *rest, **more)
    torch.optim.Adam.zero_grad = zero_grad
"""


def train_and_kill(victim, moment, data, *arguments):
    (data / "sitecustomize.py").write_text(KILLER.replace("VICTIM", str(victim)).replace("MOMENT", str(moment)))
    command = [program(), "train", "lenet", "--data", str(data), "--batch", "16", *arguments]
    ended = subprocess.run(command, cwd=data, env={**environment(), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(data)}, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout, ended.stderr


def test_begun_again_after_a_loss_it_goes_on_from_its_checkpoints(data):
    """When a member takes step 8 all have saved after step 6, for which they had waited until what they saved after step 3 was whole."""
    out, err = train_and_kill(1, 8, data, "-n", "2", "--restarts", "1", "--steps", "12", "--checkpoint", "kept", "--every", "3")
    assert "begins again with 1 member, from what was kept (restart 1 of 1)" in err
    assert "12 steps, going on after 3\n" in err or "12 steps, going on after 6\n" in err, err
    assert "test accuracy" in out and "after 12 steps" in out


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_when_rank_0_is_lost_another_one_says_how_it_goes_and_what_came_of_it(data, words):
    """All that are left look at all 64 test images."""
    out, err = train_and_kill(0, 8, data, "-n", "3", "--on-peer-lost", "shrink", "--epochs", "2", "--steps", "20", *words)
    assert "shoal: rank 0 was lost: killed by signal 9 (KILL); the others went on" in err
    if words:
        summary = json.loads(out)
        assert (summary["members"], summary["steps"]) == (2, 20) and (64 * summary["accuracy"]).is_integer()
        return
    assert "[1] step 20/20" in err
    results = [line for line in out.splitlines() if "test accuracy" in line]
    assert len(results) == 1 and results[0].startswith("[1] ") and "after 20 steps" in results[0], out


def example(data):
    return [str(ROOT / "examples" / "fashion.py"), "--data", str(data), "--batch", "16"]


def check_example(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    lines = [line for line in out.splitlines() if "test accuracy" in line]
    assert len(lines) == 1, out
    assert float(lines[0].split()[-1]) > 0.3


def test_the_example_changes_five_lines():
    marked = [line for line in (ROOT / "examples" / "fashion.py").read_text().splitlines() if "# shoal: " in line]
    assert [line.split("# shoal: ")[1] for line in marked] == ["1", "2", "3", "4", "5"]


def test_examples_that_divide_data_give_each_epoch_an_order_of_its_own():
    for text in (file.read_text() for file in (ROOT / "examples").glob("*.py")):
        assert ("DistributedSampler" in text) == (".sampler.set_epoch(epoch)" in text)


def test_the_example_alone(data):
    check_example(subprocess.Popen([sys.executable, *example(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


def test_the_example_under_shoal_run(data):
    check_example(launch(2, [sys.executable, *example(data)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


def test_the_example_under_torchrun(data):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *example(data)]
    check_example(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}))
