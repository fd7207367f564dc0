"""The example under each launcher that people have, unedited; and each launcher started wrong: one line, no orphan."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shoal
import tiny_images
from slurm import Slurm
from slurm import installed as slurm_installed

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "fashion.py")
# In one write: members share a pipe.
JOIN = "import sys, shoal; shoal.init(); sys.stdout.write(f'member {shoal.rank()} of {shoal.size()}\\n'); sys.stdout.flush()"
WAIT = JOIN + "; import time; time.sleep(600)"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_images.write(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if not slurm_installed():
        pytest.skip("needs root, slurm-wlm and munge")
    with Slurm(tmp_path_factory.mktemp("slurm"), nodes=2) as cluster:
        yield cluster


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_text("hush\n")
    file.chmod(0o600)
    return str(file)


def variables(**more) -> dict[str, str]:
    """This process's environment without what a launcher around the tests may have left there."""
    foreign = ("SHOAL_", "SLURM_", "PMIX_", "OMPI_", "TORCHELASTIC_")
    here = {name: value for name, value in os.environ.items() if not name.startswith(foreign) and name not in ("RANK", "WORLD_SIZE")}
    return {**here, "OMP_NUM_THREADS": "1", "SHOAL_TIMEOUT": "50", **more}


def run(words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL, env=variables(**more))


def example(data) -> list[str]:
    return [sys.executable, EXAMPLE, "--data", str(data), "--batch", "16"]


def check_trained(ended) -> None:
    assert ended.returncode == 0, ended.stderr
    lines = [line for line in ended.stdout.splitlines() if "test accuracy" in line]
    assert len(lines) == 1, ended.stdout
    assert float(lines[0].split()[-1]) > 0.3


def our_lines(ended) -> list[str]:
    return sorted({line for line in ended.stderr.splitlines() if line.startswith("shoal: ")})


def interrupt(process, mark: str, insist: bool = False) -> None:
    """Ctrl-C at the launcher of two members that have joined: it ends, and nobody of them is left. Some ask for another within a second."""
    assert sorted(process.stdout.readline() for _ in range(2)) == ["member 0 of 2\n", "member 1 of 2\n"]
    process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 30
    while insist and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode != 0
    wait_until_gone(mark)


def wait_until_gone(mark: str) -> None:
    """No process has `mark` in its command line any more."""
    deadline = time.monotonic() + 20
    while any(mark.encode() in file.read_bytes() for file in _command_lines()):
        assert time.monotonic() < deadline, f"a process of {mark} is left"
        time.sleep(0.05)


def _command_lines():
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            file.read_bytes()
        except OSError:
            continue
        yield file


# --- mpirun

MPIRUN = ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
needs_mpirun = pytest.mark.skipif(not shutil.which("mpirun"), reason="needs openmpi-bin")


@needs_mpirun
def test_the_example_under_mpirun(data):
    check_trained(run([*MPIRUN, "-n", "2", *example(data)]))


@needs_mpirun
def test_mpirun_ends_all_when_one_member_fails():
    """One that never joins: the others are ended by mpirun, with its status."""
    script = "import os, sys\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1': sys.exit(7)\n" + JOIN
    ended = run([*MPIRUN, "-n", "2", sys.executable, "-c", script])
    assert ended.returncode == 7, ended.stderr


# --- the program's members are started alike


@pytest.fixture
def topics(tmp_path):
    """shoal topics train with two members, and a check that the model has every token once."""
    texts = tmp_path / "t.txt"
    texts.write_text("tea pot cup milk tea\nsail boat wind deck boat\n" * 20)
    program = Path(sys.executable).with_name("shoal")

    def check(ended) -> None:
        assert ended.returncode == 0, ended.stderr
        rows = [line.split("\t") for line in (tmp_path / "m" / "doc_topics.tsv").read_text().splitlines()[1:]]
        assert [row[:3] for row in rows] == [[str(d + 1), "5", "0"] for d in range(40)]
        assert json.loads((tmp_path / "m" / "config.json").read_text())["members"] == 2
        totals = [int(pair.split(":")[1]) for line in (tmp_path / "m" / "word_topic.txt").read_text().splitlines() for pair in line.split()[1:]]
        assert sum(totals) == 200

    return [str(program), "topics", "train", str(texts), "-k", "3", "--sweeps", "20", "--test-share", "0", "--output", str(tmp_path / "m")], check


@needs_mpirun
def test_topics_under_mpirun(topics):
    words, check = topics
    check(run([*MPIRUN, "-n", "2", *words]))


def test_topics_under_srun(slurm, topics, secret):
    words, check = topics
    check(slurm.run(["srun", "-N2", "-n2", *words], **variables(SHOAL_SECRET_FILE=secret)))


# One that ends without having joined: mpirun and srun think that it has done its work.
@needs_mpirun
@pytest.mark.parametrize("missing, line", [
    (0, "rank 0 did not appear within 1 s (start every member, or look at the log of that one)"),
    (1, "rank 1 of 2 did not appear within 1 s (start every member, or look at the log of those)"),
], ids=["rank-0", "rank-1"])
def test_mpirun_with_a_member_that_never_joins(missing, line):
    mark = f"mpirun-missing-{os.getpid()}"
    script = f"test $OMPI_COMM_WORLD_RANK = {missing} && exit 0; exec \"$@\""
    ended = run([*MPIRUN, "-n", "2", "sh", "-c", script, "sh", sys.executable, "-c", JOIN, mark], SHOAL_JOIN_TIMEOUT="1")
    assert (ended.returncode, our_lines(ended)) == (3, ["shoal: join: " + line]), ended.stderr
    wait_until_gone(mark)


@needs_mpirun
def test_interrupting_mpirun_leaves_nothing():
    mark = f"mpirun-mark-{os.getpid()}"
    interrupt(subprocess.Popen([*MPIRUN, "-n", "2", sys.executable, "-c", WAIT, mark], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=variables(), stdin=subprocess.DEVNULL), mark)


# --- Slurm

def test_the_example_under_srun_with_pmix(slurm, data):
    check_trained(slurm.run(["srun", "--mpi=pmix", "-N2", "-n2", *example(data)], **variables()))


def test_the_example_under_srun_alone(slurm, data, secret):
    check_trained(slurm.run(["srun", "-N2", "-n2", *example(data)], **variables(SHOAL_SECRET_FILE=secret)))


def test_srun_on_several_nodes_without_a_secret(slurm):
    ended = slurm.run(["srun", "-N2", "-n2", sys.executable, "-c", JOIN], **variables())
    assert ended.returncode == 2
    assert our_lines(ended) == ["shoal: SHOAL_SECRET_FILE: members that slurm starts on several hosts need a secret "
                                "(name a file that only you can read (chmod 600) and every host has)"]


def test_a_batch_script_is_one_process_and_its_steps_are_jobs(slurm, tmp_path):
    """The step is on one node, where a job needs no secret."""
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{sys.executable} -c \"$JOIN\"\nsrun {sys.executable} -c \"$JOIN\"\n")
    out = tmp_path / "out"
    submitted = slurm.run(["sbatch", "-N1", "-n2", "-o", str(out), str(script)], **variables(JOIN=JOIN))
    assert submitted.returncode == 0, submitted.stderr
    deadline = time.monotonic() + 60
    while not out.exists() or out.read_text().count("\n") < 3:
        assert time.monotonic() < deadline, out.exists() and out.read_text()
        time.sleep(0.05)
    assert sorted(out.read_text().splitlines()) == ["member 0 of 1", "member 0 of 2", "member 1 of 2"]


def test_torchrun_in_srun(slurm, tmp_path):
    """Its workers inherit the step's variables, PMIx's too, and yet torchrun's count."""
    script = tmp_path / "join.py"
    script.write_text(JOIN)
    torchrun = (f"exec {sys.executable} -m torch.distributed.run --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d "
                f"--rdzv-endpoint 127.0.0.1:{free_port()} --rdzv-id $SLURM_JOB_ID {script}")
    ended = slurm.run(["srun", "--mpi=pmix", "-N2", "-n2", "sh", "-c", torchrun], **variables())
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == ["member 0 of 2", "member 1 of 2"]


def test_interrupting_srun_leaves_nothing(slurm, secret):
    mark = f"mark-{os.getpid()}"
    process = slurm.start(["srun", "-N2", "-n2", sys.executable, "-u", "-c", WAIT, mark], **variables(SHOAL_SECRET_FILE=secret))
    interrupt(process, mark, insist=True)


def test_a_step_whose_rank_0_never_joins(slurm, secret):
    mark = f"srun-missing-{os.getpid()}"
    script = "test $SLURM_PROCID = 0 && exit 0; exec \"$@\""
    ended = slurm.run(["srun", "-N2", "-n2", "sh", "-c", script, "sh", sys.executable, "-c", JOIN, mark],
                      **variables(SHOAL_SECRET_FILE=secret, SHOAL_JOIN_TIMEOUT="1"))
    assert ended.returncode == 3, ended.stderr
    (line,) = our_lines(ended)
    assert line.startswith("shoal: join: rank 0, which holds the coordinator, did not appear within 1 s at n1:2"), line
    wait_until_gone(mark)


def test_a_cluster_ends_with_a_test_that_is_killed(slurm, tmp_path):
    """Its daemons, and a step that is under way. `slurm` is here to skip where there is none."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    script = ("import pathlib, slurm, sys\n"
              "with slurm.Slurm(pathlib.Path(sys.argv[1]), nodes=1) as cluster:\n"
              "    step = cluster.start(['srun', 'sh', '-c', 'echo up; exec sleep 600'])\n"
              "    print(step.stdout.readline(), end='', flush=True)\n"
              "    step.wait()\n")
    test = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True,
                            env=variables(PYTHONPATH=str(Path(__file__).parent)))
    assert test.stdout.readline() == "up\n"
    conf = f"SLURM_CONF={folder}/slurm.conf"
    deadline = time.monotonic() + 20
    while not {"munged", "slurmctld", "slurmd", "slurmstepd", "srun", "sleep"} <= (there := {name_of(pid) for pid in processes_with(conf)}):
        assert time.monotonic() < deadline, there  # the shell says so just before it is sleep
        time.sleep(0.05)
    test.kill()
    test.communicate()
    deadline = time.monotonic() + 20
    while left := [name_of(pid) for pid in processes_with(conf)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def processes_with(variable: str) -> list[Path]:
    """Their folders in /proc."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable.encode() in file.read_bytes().split(b"\0"):
                found.append(file.parent)
        except OSError:
            continue
    return found


def name_of(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def test_a_step_whose_port_is_taken(slurm, secret):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = slurm.run(["srun", "--kill-on-bad-exit=1", "-N2", "-n2", sys.executable, "-c", JOIN],
                          **variables(SHOAL_SECRET_FILE=secret, SHOAL_COORD=f"127.0.0.1:{port}"))
    assert "task 0: Exited with exit code 2" in ended.stderr
    assert any("cannot listen: Address already in use (choose another port)" in line for line in our_lines(ended)), ended.stderr


# --- torchrun

def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


# Restarts: test_networks.py, on two hosts; test_signals.py.


@pytest.mark.parametrize("given, status, line", [
    ({}, 2, "MASTER_ADDR: not set, but RANK and WORLD_SIZE are (torchrun sets all four; unset both to run alone)"),
    ({"MASTER_ADDR": "localhost", "MASTER_PORT": "x"}, 2, "MASTER_PORT: 'x' is no port"),
    ({"MASTER_ADDR": "localhost", "MASTER_PORT": "free"}, 3, "join: the 2 members have not met at localhost:{} within 1 s: "),
    ({"MASTER_ADDR": "localhost", "MASTER_PORT": "taken"}, 2,
     "MASTER_PORT: somebody else listens at localhost:{} already (choose another port)"),
])
def test_torchruns_variables_set_by_hand(monkeypatch, given, status, line):
    for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket(socket.AF_INET6) as other:
        other.bind(("::", 0))
        other.listen()
        port = {"free": free_port(), "taken": other.getsockname()[1]}.get(given.get("MASTER_PORT"))
        for name, value in {"RANK": "0", "WORLD_SIZE": "2", "SHOAL_JOIN_TIMEOUT": "1", **given}.items():
            monkeypatch.setenv(name, str(port) if port and name == "MASTER_PORT" else value)
        with pytest.raises(shoal.Error) as ended:
            shoal.session.store_of_torchrun(2)
    assert ended.value.exit_code == status
    assert str(ended.value).startswith(line.format(port)) and "\n" not in str(ended.value)


def test_interrupting_torchrun_leaves_nothing(tmp_path):
    script = tmp_path / f"torchrun-mark-{os.getpid()}.py"
    script.write_text(WAIT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    interrupt(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables()), script.name)


# --- Kubernetes: the environment that the manifest gives to each pod

def pods(*given: dict[str, str]) -> list[tuple[int, str, str]]:
    """Status, output and errors of one process for each environment, beyond what all pods have."""
    coordinator = f"localhost:{free_port()}"
    started = []
    for own in given:
        pod = variables(**{"SHOAL_SIZE": "2", "SHOAL_JOB": "train", "SHOAL_COORD": coordinator, "SHOAL_SECRET": "hush", **own})
        started.append(subprocess.Popen([sys.executable, "-c", JOIN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=pod))
    said = [process.communicate(timeout=60) for process in started]
    return [(process.returncode, out, err) for process, (out, err) in zip(started, said)]


def test_a_kubernetes_indexed_job():
    manifest = (ROOT / "deploy" / "kubernetes" / "indexed-job.yaml").read_text()
    for given in ("completionMode: Indexed", "name: SHOAL_SIZE", "name: SHOAL_COORD", "name: SHOAL_SECRET"):
        assert given in manifest
    ended = pods({"JOB_COMPLETION_INDEX": "0"}, {"JOB_COMPLETION_INDEX": "1"})
    assert [(status, out) for status, out, _ in ended] == [(0, "member 0 of 2\n"), (0, "member 1 of 2\n")], ended


def test_pods_that_never_come_are_named():
    ((status, _, err),) = pods({"JOB_COMPLETION_INDEX": "0", "SHOAL_SIZE": "3", "SHOAL_JOIN_TIMEOUT": "1"})
    assert (status, err) == (3, "shoal: join: ranks 1, 2 of 3 did not appear within 1 s (start every member, or look at the log of those)\n")


@pytest.mark.parametrize("wrong, words", [
    ({"SHOAL_SIZE": "3"}, "was started with size"),
    ({"SHOAL_SECRET": "other"}, "the same on all members"),
], ids=["unequal-sizes", "another-secret"])
def test_pods_that_were_started_wrong(wrong, words):
    for status, _, err in pods({"JOB_COMPLETION_INDEX": "0"}, {"JOB_COMPLETION_INDEX": "1", **wrong}):
        last = err.splitlines()[-1]
        assert status == 2 and last.startswith("shoal: ") and words in last, err
