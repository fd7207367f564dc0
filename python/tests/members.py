"""Processes that form one process group and run the functions of a test: run(fn, ...) is fn(...) on every member.

Members are forked from the test's process, which itself joins nothing. Besides the group under test ("shoal", the default
one) each has a gloo group of the same members, the oracle.
"""

import datetime
import multiprocessing
import os
import signal
import tempfile
import traceback

import pytest
import torch
import torch._dynamo  # noqa: F401  DistributedDataParallel imports it: seconds, here once for all members
from torch import distributed

import shoal  # noqa: F401  registers the backend

_fork = multiprocessing.get_context("fork")
PATIENCE = 60.0  # seconds until a member that does not answer fails the test


def _serve(pipe, rank, size, store, environment, timeout):
    os.environ.update(environment)
    distributed.set_debug_level_from_env()
    torch.set_num_threads(1)
    try:
        within = datetime.timedelta(seconds=timeout)
        distributed.init_process_group("shoal", init_method=f"file://{store}", rank=rank, world_size=size, timeout=within)
        gloo = distributed.new_group(backend="gloo", timeout=datetime.timedelta(seconds=timeout))
        globals()["GLOO"] = gloo
        pipe.send((True, None))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
        return
    while True:
        try:
            work = pipe.recv()
        except EOFError:
            break
        if work is None:
            break
        fn, arguments = work
        try:
            pipe.send((True, fn(*arguments)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
    distributed.destroy_process_group()


def gloo():
    """The oracle's group, on a member."""
    return globals()["GLOO"]


class Members:
    def __init__(self, size, environment=None, timeout=30.0):
        self.size = size
        self.folder = tempfile.TemporaryDirectory()
        self.pipes, self.processes = [], []
        for rank in range(size):
            ours, theirs = _fork.Pipe()
            store = os.path.join(self.folder.name, "store")
            process = _fork.Process(target=_serve, args=(theirs, rank, size, store, environment or {}, timeout), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        self.results()

    def start(self, fn, *arguments, ranks=None):
        for rank in range(self.size) if ranks is None else ranks:
            self.pipes[rank].send((fn, arguments))

    def results(self, ranks=None):
        answers = []
        for rank in range(self.size) if ranks is None else ranks:
            assert self.pipes[rank].poll(PATIENCE), f"rank {rank} does not answer"
            answers.append(self.pipes[rank].recv())
        failed = "".join(f"a member:\n{answer}" for good, answer in answers if not good)
        assert not failed, failed
        return [answer for _, answer in answers]

    def run(self, fn, *arguments):
        self.start(fn, *arguments)
        return self.results()

    def kill(self, rank):
        os.kill(self.processes[rank].pid, signal.SIGKILL)

    def close(self):
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except OSError:
                pass
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()
        self.folder.cleanup()


def of_module(size, **options):
    """The fixture `members` of a test module: one group for all its tests."""

    @pytest.fixture(scope="module")
    def members():
        group = Members(size, **options)
        yield group
        group.close()

    return members


def rank():
    """Of the member that runs this."""
    return distributed.get_rank()
