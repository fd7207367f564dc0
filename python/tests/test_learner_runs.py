"""Runs of learners by the program: the data of a killed member goes to those left; an asynchronous run is recorded and run again."""

import os
import random
import signal
import subprocess

import numpy as np
import pytest
from pool import program
from safetensors.numpy import load_file


def test_a_killed_members_examples_go_to_those_left(tmp_path):
    """Each example has a column of its own, so a weight says how often its example was seen: as often as by one member that nothing happened to."""
    (tmp_path / "s.svm").write_text("".join(f"{i % 2} {i + 1}:1\n" for i in range(400)))
    train = [program(), "linear", "train", "s.svm", "--test-share", "0", "--l2", "0", "--epochs", "100", "--batch", "10", "--json", "--output"]
    subprocess.run([*train, "alone"], cwd=tmp_path, check=True, capture_output=True)
    member = ["sh", "-c", 'echo $$ > pid-$SHOAL_RANK; exec "$0" "$@"', *train, "four"]
    run = subprocess.Popen([program(), "run", "-n", "4", "--restarts", "1", "--", *member], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    epochs = []
    for line in run.stdout:
        if '"epoch"' not in line:
            continue
        epochs.append(int(line.split(",")[0].split(":")[1]))
        if len(epochs) == 4:
            os.kill(int((tmp_path / "pid-2").read_text()), signal.SIGKILL)
    errors = run.stderr.read()
    assert run.wait(timeout=60) == 0, errors
    assert "begins again with 3 members, from what was kept (restart 1 of 1)" in errors
    assert sorted(set(epochs)) == list(range(1, 101))
    alone, four = (load_file(tmp_path / folder / "model.safetensors")["weights"] for folder in ("alone", "four"))
    assert np.abs(alone).min() > 1 and np.allclose(alone, four, rtol=1e-5)


RATINGS = ["factorize", "train", "r.csv", "--epochs", "3", "--batch", "20"]
ROWS = ["linear", "train", "s.svm", "--epochs", "3", "--batch", "20"]


@pytest.mark.parametrize("words", [[*RATINGS, "--consistency", "async"], [*RATINGS, "--consistency", "cap:2"], [*RATINGS, "--consistency", "dssp:0:3"],
                                   [*ROWS, "--consistency", "async"], [*ROWS, "--consistency", "essp:2"]], ids=lambda words: f"{words[0]}-{words[-1]}")
def test_a_recorded_run_is_run_again_to_the_bit(tmp_path, words):
    draw = random.Random(1)
    (tmp_path / "r.csv").write_text("".join(f"{draw.randrange(200)},{draw.randrange(80)},{draw.randrange(1, 6)}\n" for _ in range(6000)))
    (tmp_path / "s.svm").write_text("".join(f"{i % 3} {i % 37 + 1}:1 {38 + i % 11}:{draw.random():.3f}\n" for i in range(1500)))
    models = []
    for kept in ("SHOAL_RECORD", "SHOAL_REPLAY", "SHOAL_REPLAY"):
        ended = subprocess.run([program(), "run", "-n", "3", "--", program(), *words, "--output", str(len(models))], cwd=tmp_path, capture_output=True, text=True,
                               env={**os.environ, kept: str(tmp_path / "order"), "SHOAL_SHARED_MEMORY": "0"}, timeout=120)
        assert ended.returncode == 0, ended.stderr
        models.append((tmp_path / str(len(models)) / "model.safetensors").read_bytes())
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize(("variables", "flags", "line"), [
    ({"SHOAL_REPLAY": "none"}, [], "cannot be read: No such file or directory (replay with the members and tables that were recorded)"),
    ({"SHOAL_RECORD": "a", "SHOAL_REPLAY": "b"}, [], "SHOAL_RECORD and SHOAL_REPLAY: a run is either recorded or a replay (unset one)"),
    ({"SHOAL_RECORD": "a"}, ["--sharing", "factors", "--consistency", "ssp:2"], "sharing: which factors a member has taken in is not recorded (share rows, or take bsp)"),
])
def test_what_cannot_be_recorded_or_run_again(tmp_path, variables, flags, line):
    (tmp_path / "s.svm").write_text("0 1:1\n1 2:1\n" * 20)
    ended = subprocess.run([program(), "run", "-n", "2", "--", program(), "linear", "train", "s.svm", *flags], cwd=tmp_path, capture_output=True, text=True,
                           env={**os.environ, **variables}, timeout=60)
    assert ended.returncode == 2 and line in ended.stderr, ended.stderr


def test_members_serve_rows_by_their_memory(tmp_path):
    """A record says how many buckets each member serves; the model is that of equal shares."""
    (tmp_path / "s.svm").write_text("".join(f"{i % 3} {i % 37 + 1}:1 {38 + i % 11}:1\n" for i in range(600)))
    words = f'"{program()}" linear train s.svm --sharing rows --epochs 2 --batch 20 --output'
    for folder, memory in (("even", ""), ("uneven", "SHOAL_TABLE_MEMORY=$((1 + 2 * SHOAL_RANK))GB")):
        ended = subprocess.run([program(), "run", "-n", "2", "--", "sh", "-c", f"{memory} exec {words} {folder}"], cwd=tmp_path, capture_output=True,
                               text=True, env={**os.environ, "SHOAL_RECORD": str(tmp_path / f"{folder}-order")}, timeout=60)
        assert ended.returncode == 0, ended.stderr
        shares = {file.read_bytes().split(b"\n")[0].split(b"copies of ")[1].split(b",")[0] for file in (tmp_path / f"{folder}-order").glob("*-copies.order")}
        assert shares == {b"2048 2048" if folder == "even" else b"1024 3072"}
    assert (tmp_path / "even/model.safetensors").read_bytes() == (tmp_path / "uneven/model.safetensors").read_bytes()


@pytest.mark.parametrize(("variable", "said", "line"), [
    ("SHOAL_TABLE_MEMORY", "much", "SHOAL_TABLE_MEMORY: 'much' is not a size (16GB)"),
    ("SHOAL_TABLE_MEMORY", "1KB", "SHOAL_TABLE_MEMORY: 1KB is not between 1 MB and 1,000 TB (16GB)"),
    ("SHOAL_TABLE_COPIES", "much", "SHOAL_TABLE_COPIES: 'much' is not a size (16GB)"),
    ("SHOAL_TABLE_PARTS", "0", "SHOAL_TABLE_PARTS: 0 is not between 1 and 4096 (4)"),
    ("SHOAL_COLD_ROWS", "/nowhere", "/nowhere: no room for rows: No such file or directory (name another folder for cold rows)")])
def test_memory_that_is_none(tmp_path, variable, said, line):
    (tmp_path / "s.svm").write_text("0 1:1\n1 2:1\n" * 20)
    ended = subprocess.run([program(), "linear", "train", "s.svm"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ, variable: said})
    assert ended.returncode == 2 and line in ended.stderr and len(ended.stderr.splitlines()) == 1, ended.stderr


def test_what_members_met_at_their_tables_is_explained(tmp_path):
    """Each member's rows by how stale they were, its waits and its bytes are notes of the run, which `shoal explain` tells."""
    (tmp_path / "r.csv").write_text("".join(f"{i % 200},{i % 77},{i % 5}\n" for i in range(4000)))
    subprocess.run([program(), "run", "-n", "2", "--", program(), *RATINGS, "--consistency", "ssp:2"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    told = subprocess.run([program(), "explain"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60).stdout
    for rank in range(2):
        assert any(f"rank {rank}," in line and "(ssp:2): " in line and " rows read, " in line and " by twos" in line for line in told.splitlines()), told
