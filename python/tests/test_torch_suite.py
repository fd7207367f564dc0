"""PyTorch's own tests of torch.distributed on Shoal (see torch_suite/adapter.py), each as one test here."""

import re
import subprocess
import sys
import tempfile
from multiprocessing import Pipe
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "torch_suite"
sys.path.insert(0, str(FOLDER))
import adapter  # noqa: E402

SIZE = 4
PATIENCE = 200.0  # seconds for one test, its members' own included


def not_run():
    """{test: words of the skip or error that show the reason}"""
    table, words = {}, None
    for line in (FOLDER / "not_run.txt").read_text().splitlines():
        if heading := re.fullmatch(r"\[.+\] (.+)", line):
            words = heading[1]
        elif line and not line.startswith("#"):
            table[line] = words
    return table


NOT_RUN = not_run()


@pytest.fixture(scope="module")
def suite():
    ours, theirs = Pipe()
    with tempfile.TemporaryFile("w+") as output:
        server = subprocess.Popen([sys.executable, str(FOLDER / "serve.py"), str(SIZE), str(theirs.fileno())],
                                  pass_fds=[theirs.fileno()], stdout=output, stderr=output)
        theirs.close()
        try:
            ours.recv()  # everything is imported
        except EOFError:
            output.seek(0)
            pytest.fail(output.read())
        yield ours, output
        ours.close()
        server.wait(60)


@pytest.mark.parametrize("name", adapter.test_names())
def test_as_pytorch_tests_it(suite, name):
    pipe, output = suite
    output.seek(0)
    output.truncate()
    pipe.send(name)
    assert pipe.poll(PATIENCE), "no answer"
    bad = [(rank, text) for rank, (outcome, text) in enumerate(pipe.recv()) if outcome != "passed"]
    output.seek(0)
    if name not in NOT_RUN:
        assert not bad, "\n".join([*(f"rank {rank}: {text}" for rank, text in bad), "--- output of the members", output.read()])
    else:
        assert bad, f"{name} runs: strike it from not_run.txt"
        assert any(NOT_RUN[name] in text for _, text in bad), bad[0][1]


def test_the_table_names_tests_of_the_suite():
    assert NOT_RUN.keys() <= set(adapter.test_names())
