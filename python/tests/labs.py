"""Hosts of a lab for tests, and members that run on them.

    with labs.up("slow", "-n", "2", "--rate", "10mbit") as lab:
        said = labs.run_members(lab, 2, "test_slow_links", folder)   # each member calls test_slow_links.member(folder)
"""

import contextlib
import os
import subprocess
import sys

import pytest

from pool import environment, program


@contextlib.contextmanager
def up(name: str, *flags: str):
    """A lab of this process, by its full name, until the block ends. The test is skipped where the machine permits none."""
    name = f"{name}{os.getpid()}"
    made = subprocess.run([program(), "lab", "up", *flags, "--name", name], capture_output=True, text=True)
    if made.returncode == 2 and "does not permit network namespaces" in made.stderr:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stderr
    try:
        yield name
    finally:
        subprocess.run([program(), "lab", "down", name], check=True)


def run_members(lab: str, members: int, module: str, folder, **variables: str) -> str:
    """Runs member(folder) of a test module on each host, to its end, with these in its environment. What was said beside the output."""
    command = [sys.executable, "-c", f"import torch.optim, {module} as t; t.member({str(folder)!r})"]
    ran = subprocess.run([program(), "run", "-n", str(members), "--lab", lab, "--", *command], env={**environment(), **variables}, cwd=folder, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr
