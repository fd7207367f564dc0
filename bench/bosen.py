"""Clients of Bösen (bench/peers/bosen/member.cc, built by its build.sh outside this tree), for the benchmarks that have it as a peer."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import side_by_side as sbs

MODELS = {"ssp": "SSP", "essp": "SSPPush"}  # ours by its name


def run(lab: sbs.Lab, program: pathlib.Path, mode: str, consistency: str, clock_ms: float, length: int, *more: str, timeout: float = 600) -> list[dict]:
    """The JSON lines of all clients, one on each of the lab's hosts; consistency as in "essp:3"."""
    name, _, staleness = consistency.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        first = random.randrange(20000, 30000)  # each takes a few ports from its own on
        hosts = pathlib.Path(folder, "hosts")
        hosts.write_text("".join(f"{client} {lab.address(client)} {first + 20 * client}\n" for client in range(lab.members)))
        processes = []
        try:
            for client in range(lab.members):
                command = [str(program), mode, str(hosts), str(client), str(lab.members), MODELS[name], staleness, str(clock_ms), str(length), *more]
                processes.append(subprocess.Popen(lab.exec(client, command), env={**os.environ, "GLOG_minloglevel": "2"}, cwd=folder,
                                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
            said = [process.communicate(timeout=timeout)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    if any(process.returncode for process in processes):
        sys.exit(f"bench: Bösen's clients ended with {[process.returncode for process in processes]}")
    return [json.loads(line) for out in said for line in out.splitlines() if line.startswith("{")]
