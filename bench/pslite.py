"""Processes of ps-lite (bench/peers/pslite_*.cc, compiled with it outside this tree), for the benchmarks that have it as a peer."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys

import side_by_side as sbs


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(lab: sbs.Lab, program: pathlib.Path, servers: list[int], workers: list[int], arguments: list[str], timeout: float = 600) -> list[dict]:
    """The JSON lines of all: a scheduler on the first host, servers and workers on theirs. Everybody binds to its host's address alone."""
    environment = {**os.environ, "DMLC_PS_ROOT_URI": lab.address(0), "DMLC_PS_ROOT_PORT": str(free_port()),
                   "DMLC_NUM_SERVER": str(len(servers)), "DMLC_NUM_WORKER": str(len(workers))}
    processes = []
    try:
        for role, host in [("scheduler", 0), *(("server", host) for host in servers), *(("worker", host) for host in workers)]:
            own = {**environment, "DMLC_ROLE": role, "DMLC_NODE_HOST": lab.address(host)}
            processes.append(subprocess.Popen(lab.exec(host, [str(program), *arguments]), env=own, stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE, text=True))
        said = [process.communicate(timeout=timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (_, errors) in zip(processes, said):
        if process.returncode:
            sys.exit(f"bench: ps-lite ended with {process.returncode}:\n{errors[-2000:]}")
    return [json.loads(line) for out, _ in said for line in out.splitlines() if line.startswith("{")]
