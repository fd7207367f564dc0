"""`shoal topics train` that was ended goes on, on another number of members too; and only as the run that it was. With `--on-peer-lost
shrink` it goes on without being ended."""

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter

import numpy as np
import pytest
from pool import program
from safetensors.numpy import load_file
from test_topics import counts, lists

DOCUMENTS = 400
ALL = ["texts.txt", "-k", "4", "--threads", "1", "--stop-words", "none", "--output", "t.topics", "--test-share", "0"]
FLAGS = [*ALL[:-1], "0.05"]


def command(members: int, *flags: str) -> list[str]:
    run = [program(), "run", "-n", str(members), "--"] if members > 1 else []
    return [*run, program(), "topics", "train", *FLAGS, *flags]


def told(folder, members: int, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(members, *flags), cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A folder where a run of two members was ended after it had kept a few sweeps."""
    folder = tmp_path_factory.mktemp("ended")
    (folder / "texts.txt").write_text("".join(" ".join(words) + "\n" for words in lists(counts(DOCUMENTS))))
    run = subprocess.Popen(command(2, "--sweeps", "1000000", "--keep-every", "2"), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while len(list((folder / "t.topics" / "checkpoint").glob("sweep-*.safetensors"))) < 2 and run.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    _, errors = run.communicate(timeout=60)
    assert list((folder / "t.topics" / "checkpoint").glob("sweep-*.rank-*")), errors
    return folder


@pytest.mark.parametrize("parallel", ["rotation", pytest.param("data", marks=pytest.mark.slow)])
def test_a_killed_members_documents_go_to_the_others(tmp_path, parallel):
    """The run begins again by itself, from what was kept, with exact counts."""
    (tmp_path / "texts.txt").write_text("".join(" ".join(words) + "\n" for words in lists(counts(DOCUMENTS))))
    member = f'echo $$ > pid-$SHOAL_RANK; exec "{program()}" topics train "$@"'
    run = subprocess.Popen([program(), "run", "-n", "3", "--restarts", "1", "--", "sh", "-c", member, "-", *FLAGS, "--sweeps", "1000", "--keep-every", "2",
                            "--parallel", parallel],
                           cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(list((tmp_path / "t.topics" / "checkpoint").glob("sweep-*.safetensors"))) < 3 and run.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(int((tmp_path / "pid-1").read_text()), signal.SIGKILL)
    output, errors = run.communicate(timeout=120)
    assert run.returncode == 0, errors
    assert "begins again with 2 members, from what was kept (restart 1 of 1)" in errors
    assert "goes on after sweep" in output
    folder = tmp_path / "t.topics"
    assert json.loads((folder / "config.json").read_text())["members"] == 2
    assert [int(line.split("\t")[1]) for line in (folder / "doc_topics.tsv").read_text().splitlines()[1:]] == [30] * DOCUMENTS
    model = load_file(folder / "model.safetensors")
    assert np.array_equal(model["totals"], np.bincount(model["topics"], model["counts"], 4))
    assert 5 <= DOCUMENTS - int(model["totals"].sum()) // 30 <= 40


class Survived:
    """A run of three members that goes on without those that are killed."""

    def __init__(self, folder, *flags: str):
        (folder / "texts.txt").write_text("".join(" ".join(words) + "\n" for words in lists(counts(DOCUMENTS))))
        member = f'echo $$ > pid-$SHOAL_RANK; exec "{program()}" topics train "$@"'
        self.folder, self.said = folder, ""
        with (folder / "errors").open("w") as errors:
            self.run = subprocess.Popen([program(), "run", "-n", "3", "--on-peer-lost", "shrink", "--", "sh", "-c", member, "-", *ALL,
                                         "--look-every", "1", *flags], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)

    def until(self, words: str) -> None:
        for line in self.run.stdout:
            self.said += line
            if words in line:
                return
        raise AssertionError(self.said + (self.folder / "errors").read_text())

    def kill(self, rank: int) -> None:
        os.kill(int((self.folder / f"pid-{rank}").read_text()), signal.SIGKILL)

    def model(self):
        """After the end: what it left, with all documents and each of their words in it, in topics as in words."""
        self.said += self.run.stdout.read()
        assert self.run.wait(60) == 0, (self.folder / "errors").read_text()
        folder = self.folder / "t.topics"
        assert not (folder / "checkpoint").exists()
        lines = [line.split("\t") for line in (folder / "doc_topics.tsv").read_text().splitlines()[1:]]
        assert [(name, int(tokens)) for name, tokens, *_ in lines] == [(str(d + 1), 30) for d in range(DOCUMENTS)]
        model, documents = load_file(folder / "model.safetensors"), load_file(folder / "doc_counts.safetensors")
        words = (folder / "vocab.txt").read_text().split()
        there = Counter(word for document in lists(counts(DOCUMENTS)) for word in document)
        assert dict(zip(words, np.add.reduceat(model["counts"], model["offsets"][:-1].astype(int)))) == there
        assert np.array_equal(model["totals"], np.bincount(model["topics"], model["counts"], 4))
        assert np.array_equal(model["totals"], np.bincount(documents["topics"], documents["counts"], 4))
        return folder / "model.safetensors"


@pytest.mark.parametrize(("victims", "parallel"), [((0, 1), "rotation"), ((1,), "data"),
                                                   *(pytest.param(*each, marks=pytest.mark.slow) for each in [
                                                       ((0,), "rotation"), ((1,), "rotation"), ((2,), "rotation"), ((2, 0), "rotation"), ((2, 0), "data")])])
def test_those_who_are_left_train_on_with_all_documents(tmp_path, victims, parallel):
    """From the last sweep that was kept, whoever is killed; of two, the last one alone."""
    run = Survived(tmp_path, "--sweeps", "1000", "--keep-every", "2", "--parallel", parallel)
    for victim in victims:
        run.until("sweep 5 of" if victim == victims[0] else "goes on after sweep")
        run.kill(victim)
    run.model()
    assert len(re.findall(r"goes on after sweep \d", run.said)) == len(victims)
    assert json.loads((tmp_path / "t.topics" / "config.json").read_text())["members"] == 3 - len(victims)


def test_without_a_checkpoint_they_begin_anew_as_those_that_they_are(tmp_path):
    """It is the model of a run of as many members that were never more, to the bit."""
    run = Survived(tmp_path, "--sweeps", "1000", "--keep-every", "0")
    run.until("sweep 5 of")
    run.kill(1)
    survived = run.model()
    assert "nothing to go on from: begins anew" in run.said
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "texts.txt").write_bytes((tmp_path / "texts.txt").read_bytes())
    two = [program(), "run", "-n", "2", "--", program(), "topics", "train", *ALL, "--sweeps", "1000", "--keep-every", "0"]
    subprocess.run(two, cwd=tmp_path / "two", stdout=subprocess.DEVNULL, check=True, timeout=120)
    assert (tmp_path / "two" / "t.topics" / "model.safetensors").read_bytes() == survived.read_bytes()


def test_documents_that_have_changed_meanwhile_end_it_with_a_line(tmp_path):
    run = Survived(tmp_path, "--sweeps", "1000000", "--keep-every", "2")
    run.until("sweep 5 of")
    (tmp_path / "texts.txt").write_text("one two three\n")
    run.kill(2)
    assert run.run.communicate(timeout=60) and run.run.returncode != 0
    assert "texts.txt: is not what it was when training began (train anew)" in (tmp_path / "errors").read_text()


def kept(folder) -> int:
    """The newest sweep that both members have kept."""
    ranks = {}
    for file in (folder / "t.topics" / "checkpoint").glob("sweep-*.rank-*"):
        sweep, rank = re.fullmatch(r"sweep-(\d+)\.rank-(\d)-of-2\.safetensors", file.name).groups()
        ranks.setdefault(int(sweep), set()).add(rank)
    return max(sweep for sweep, of in ranks.items() if of == {"0", "1"})


@pytest.mark.parametrize(("flags", "words"), [
    ([], "t.topics: holds checkpoints of a run that did not end (--resume goes on from them"),
    (["--resume", "--seed", "2"], "t.topics: seed is 1 in the model, 2 here"),
    (["--resume", "--top-words", "1"], "t.topics: words is "),
    (["--resume", "--beta", "0.1"], "t.topics: beta is 0.01 in the model, 0.1 here"),
])
def test_another_run_does_not_take_it_up(ended, flags, words):
    end = told(ended, 2, "--sweeps", "5", *flags)
    assert end.returncode == 2
    assert words in end.stderr


def test_it_goes_on_with_other_members(ended):
    """Files may be told to be what they were found to be: what is read of them is the same."""
    sweeps = kept(ended)
    end = told(ended, 3, "--resume", "--sweeps", str(sweeps + 3), "--format", "lines")
    assert end.returncode == 0, end.stderr
    assert f"goes on after sweep {sweeps}\n" in end.stdout
    folder = ended / "t.topics"
    assert not (folder / "checkpoint").exists()
    config = json.loads((folder / "config.json").read_text())
    assert (config["members"], config["format"]) == (3, "lines")
    lines = (folder / "doc_topics.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[0] for line in lines] == [str(d + 1) for d in range(DOCUMENTS)]
    assert all(int(line.split("\t")[1]) == 30 for line in lines)  # of documents that were held out, too
    model = load_file(folder / "model.safetensors")
    held_out = DOCUMENTS - int(model["totals"].sum()) // 30
    assert 5 <= held_out <= 40  # a share of 0.05, of which each member has its own
    assert np.array_equal(model["totals"], np.bincount(model["topics"], model["counts"], 4))
