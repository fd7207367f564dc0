"""Members of a run for tests: processes that `shoal run` started and that stay, to call what a test sends them together.

    results = pool(3).run(scenario, argument)      # by rank; scenario is a top-level function of a test module
"""

import importlib
import json
import os
import pickle  # by value: multiprocessing would share the memory of tensors
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from multiprocessing.connection import Client, Listener
from pathlib import Path

PATIENCE = 60.0  # seconds for one scenario


def program() -> str:
    """The `shoal` program beside this Python, or the one that SHOAL_PROGRAM names."""
    found = os.environ.get("SHOAL_PROGRAM") or str(Path(sys.executable).parent / "shoal")
    assert shutil.which(found), f"{found}: no shoal program; build and install first"
    return found


def environment() -> dict[str, str]:
    """This process's, in which the modules beside this file can be imported."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))}


def launch(members: int, command: list[str], variables: dict[str, str] | None = None, flags: list[str] | None = None,
           **options) -> subprocess.Popen:
    here = {**environment(), "SHOAL_TIMEOUT": "50", **(variables or {})}
    options.setdefault("cwd", tempfile.mkdtemp(prefix="shoal-test-"))
    return subprocess.Popen([program(), "run", "-n", str(members), *(flags or []), "--", *command], env=here, **options)


def notes_of_run(folder) -> list[str]:
    """What the report of the only run that was started in `folder` tells of it."""
    (run,) = (Path(folder) / "runs").iterdir()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', (run / "report.html").read_text(), re.DOTALL)
    return json.loads(data.group(1))["notes"]


class Pool:
    def __init__(self, size: int):
        self.size = size
        folder = tempfile.mkdtemp(prefix="shoal-pool-")
        with Listener(folder + "/socket", "AF_UNIX", backlog=size) as listener:
            self._output = open(folder + "/output", "w+")
            self._process = launch(size, [sys.executable, __file__, listener.address], cwd=folder, stdout=self._output,
                                   stderr=self._output)
            listener._listener._socket.settimeout(PATIENCE)
            self._members = [None] * size
            for _ in range(size):
                connection = listener.accept()
                self._members[connection.recv()] = connection

    def run(self, function, *arguments):
        work = function.__module__, function.__name__, arguments
        results, errors = [], []
        try:
            for member in self._members:
                member.send_bytes(pickle.dumps(work))
            for rank, member in enumerate(self._members):
                if not member.poll(PATIENCE):
                    errors.append(f"rank {rank}: no answer within {PATIENCE:.0f} s")
                    continue
                fine, value = pickle.loads(member.recv_bytes())
                (results if fine else errors).append(value if fine else f"rank {rank}: {value}")
        except (EOFError, OSError) as error:
            errors.append(f"a member is gone: {error!r}")
        if errors:
            self.close()
            self._output.seek(0)
            raise AssertionError("\n".join([*errors, "--- output of the members", self._output.read()]))
        return results

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and not self._members[0].closed

    def close(self) -> None:
        for member in self._members:
            member.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait(20)


def _serve(address: str) -> None:
    import torch

    import shoal

    torch.set_num_threads(1)
    shoal.init()
    with Client(address, "AF_UNIX") as test:
        test.send(shoal.rank())
        while True:
            try:
                module, name, arguments = pickle.loads(test.recv_bytes())
            except EOFError:
                return
            try:
                answer = True, getattr(importlib.import_module(module), name)(*arguments)
            except BaseException:
                answer = False, traceback.format_exc()
            test.send_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    _serve(sys.argv[1])
