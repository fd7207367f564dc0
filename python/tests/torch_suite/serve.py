"""Runs tests of PyTorch's suite in members that stay: `serve.py SIZE PIPE` takes names and answers each with outcomes by rank.

The suite's own harness starts new processes for every test; here they are forked once, from a process that has everything
imported, and again only after a failure.
"""

import contextlib
import datetime
import faulthandler
import io
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import unittest
from multiprocessing.connection import Connection, wait
from pathlib import Path

import adapter

_fork = multiprocessing.get_context("fork")
PATIENCE = 100.0  # seconds for one test on all members


class _Nobody:
    """In place of the suite's pipe to the process that would have started this one."""

    def __init__(self):
        self.text = ""

    def send(self, text):
        self.text += str(text)


def _as_member(suite, name, rank, folder):
    """What TestDistBackend._run does in a process of its own. Gives ("passed" | "skipped" | "failed", text)."""
    from torch import distributed
    from torch.testing._internal import common_distributed, common_utils

    os.environ["TEMP_DIR"] = folder
    suite.INIT_METHOD = os.environ["INIT_METHOD"] = f"file://{folder}/init_dir/shared_init_file"
    suite.Barrier.barrier_id = 0
    skips = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}
    method = getattr(suite.TestOfMember, name)
    if getattr(method, "__unittest_skip__", False):
        return "skipped", method.__unittest_skip_why__
    outcome = "passed", ""
    try:
        test = suite.TestOfMember(name)
        test.rank, test.file_name = rank, folder + "/store"
        timeout = datetime.timedelta(seconds=suite.CUSTOM_PG_TIMEOUT.get(name, suite.default_pg_timeout))
        distributed.init_process_group("shoal", init_method=test.init_method, rank=rank, world_size=int(test.world_size), timeout=timeout)
        test._barrier()
        common_utils.set_rng_seed()
        getattr(test, name)()
        test._barrier()
    except unittest.SkipTest as skip:
        outcome = "skipped", str(skip)
    except SystemExit as end:
        outcome = ("skipped", skips[end.code]) if end.code in skips else ("failed", f"exit({end.code})")
    except BaseException:
        outcome = "failed", traceback.format_exc()
    distributed.destroy_process_group()
    return outcome


def _serve_member(suite, rank, pipe):
    import torch

    torch.set_num_threads(1)
    environment = dict(os.environ)
    while True:
        try:
            name, folder = pipe.recv()
        except EOFError:
            return
        output = io.StringIO()
        faulthandler.dump_traceback_later(PATIENCE - 5, file=sys.__stderr__)  # where it hangs
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            outcome, text = _as_member(suite, name, rank, folder)
        faulthandler.cancel_dump_traceback_later()
        pipe.send((outcome, text + output.getvalue() if outcome == "failed" else text))
        os.environ.clear()
        os.environ.update(environment)
        torch.distributed.set_debug_level_from_env()


class _Members:
    def __init__(self, suite, size):
        self.pipes, self.processes = [], []
        for rank in range(size):
            ours, theirs = _fork.Pipe()
            process = _fork.Process(target=_serve_member, args=(suite, rank, theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def run(self, name, folder):
        """Outcomes by rank. A member that is gone has failed, and one that does not answer: the others' failure may keep it."""
        for pipe in self.pipes:
            with contextlib.suppress(OSError):  # it is gone, as its answer will say
                pipe.send((name, folder))
        until = time.monotonic() + PATIENCE
        answers = {}
        while len(answers) < len(self.pipes):
            ready = wait([pipe for pipe in self.pipes if pipe not in answers], until - time.monotonic())
            if not ready:
                break
            for pipe in ready:
                try:
                    answers[pipe] = pipe.recv()
                except (EOFError, OSError):
                    answers[pipe] = "failed", "the process is gone"
                if answers[pipe][0] == "failed":
                    until = min(until, time.monotonic() + 1)
        return [answers.get(pipe, ("failed", "no answer")) for pipe in self.pipes]

    def close(self):
        for pipe, process in zip(self.pipes, self.processes):
            pipe.close()
            process.kill()
            process.join()


def main():
    size, pipe = int(sys.argv[1]), Connection(int(sys.argv[2]))
    os.environ.update({"BACKEND": "shoal", "WORLD_SIZE": str(size), "INIT_METHOD": "file://", "MASTER_ADDR": "localhost"})
    import torch
    import torch._dynamo  # noqa: F401  DistributedDataParallel imports it: here once for all members

    import shoal  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    suite = adapter.load()
    suite.TestOfMember = type("TestOfMember", (suite.TestDistBackend, suite.DistributedTest._DistTestBase), {})
    members = None
    pipe.send(None)
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            break
        members = members or _Members(suite, size)
        with tempfile.TemporaryDirectory(prefix="shoal-suite-") as folder:
            for inside in ("barrier", "test_dir", "init_dir"):
                (Path(folder) / inside).mkdir()
            outcomes = members.run(name, folder)
            if any(outcome == "failed" for outcome, _ in outcomes):
                members.close()  # before the folder goes: who does not answer may be writing there
                members = None
        pipe.send(outcomes)
    if members:
        members.close()


if __name__ == "__main__":
    main()
