"""Side by side: runs variants in turn (A B C A B C ...), and prints median, spread and ratio.

A variant is a function that runs once and returns {figure: number}. Nothing here judges: people read ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = sys.executable
BUILD = pathlib.Path(os.environ.get("SHOAL_BUILD", ROOT / "build" / "release"))


def shoal() -> str:
    """The `shoal` program beside this Python, else on PATH."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "shoal"
    found = str(beside) if beside.exists() else shutil.which("shoal")
    if not found:
        sys.exit("bench: the shoal program is not installed (make build)")
    return found


class Lab:
    """Hosts as network namespaces for the time of a `with`. None as rate: no lab, loopback. topology: a file that says hosts and
    rates instead; `rate` is then what is printed. delay_ms: of each frame on its way, one way, by a switch of our own (bench/net/delayed_switch.cc)."""

    def __init__(self, members: int, rate: str | None, topology: str | None = None, delay_ms: float = 0):
        self.members, self.rate, self.topology, self.delay_ms = members, rate, topology, delay_ms
        self.name = f"bench{os.getpid()}"
        self.switch = None

    def __enter__(self) -> "Lab":
        try:
            self._make()
        except BaseException:  # Ctrl-C, too, leaves no namespace behind
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        if self.delay_ms and (self.topology or not self.rate):
            sys.exit("bench: --delay-ms is for links of one rate: say --rate, too")
        if self.rate:
            hosts = ["--topology", self.topology] if self.topology else ["-n", str(self.members), "--rate", self.rate]
            subprocess.run([shoal(), "lab", "up", *hosts, "--name", self.name], check=True, stdout=subprocess.DEVNULL)
        if self.delay_ms:
            inside, ports = f"shoal-{self.name}-sw", [f"p{host}" for host in range(self.members)]
            for port in ports:
                subprocess.run(["ip", "-n", inside, "link", "set", port, "nomaster"], check=True)
            program = BUILD / "bench" / "net" / "bench_net_delayed_switch"
            self.switch = subprocess.Popen(["ip", "netns", "exec", inside, program, str(self.delay_ms), *ports], stdout=subprocess.PIPE, text=True)
            if self.switch.stdout.readline() != "ready\n":
                sys.exit("bench: no switch that delays")

    def __exit__(self, *_: object) -> None:
        if self.switch:
            self.switch.kill()
            self.switch.wait()
        if self.rate:
            subprocess.run([shoal(), "lab", "down", self.name], check=False, stdout=subprocess.DEVNULL)

    def run_flags(self) -> list[str]:
        return ["-n", str(self.members), *(["--lab", self.name] if self.rate else [])]

    def exec(self, host: int, command: list[str]) -> list[str]:
        return [shoal(), "lab", "exec", self.name, str(host), "--", *command] if self.rate else command

    def address(self, host: int) -> str:
        """Address of a host, as its own namespace says; loopback without a lab."""
        if not self.rate:
            return "127.0.0.1"
        shown = subprocess.run(self.exec(host, ["ip", "-j", "-4", "addr", "show", "dev", "c0"]), check=True, capture_output=True, text=True)
        return json.loads(shown.stdout)[0]["addr_info"][0]["local"]

    def interface(self) -> str:
        return "c0" if self.rate else "lo"

    def transmitted(self) -> list[int]:
        """Bytes that left each host's interface so far (frames, with all headers)."""
        counts = []
        for host in range(self.members if self.rate else 0):
            shown = subprocess.run(self.exec(host, ["cat", "/sys/class/net/c0/statistics/tx_bytes"]), check=True, capture_output=True, text=True)
            counts.append(int(shown.stdout))
        return counts


def options(doc: str) -> argparse.ArgumentParser:
    """What every benchmark of members takes; `doc` is its module's."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", help="links of a lab, e.g. 200mbit; without: loopback")
    parser.add_argument("-n", "--members", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    return parser


def run_members(lab: Lab, command: list[str], environment: dict[str, str] | None = None, timeout: float = 600, status: int = 0, folder: str = "/tmp",
                started: Callable[[int], None] = lambda process: None) -> list[dict]:
    """Runs `command` as every member in `folder`, which must end with `status`; returns the JSON lines that members printed. started: is told the
    process that has them as children."""
    full = [shoal(), "run", *lab.run_flags(), "--name", "bench", "--", *command]
    with subprocess.Popen(full, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}, cwd=folder) as run:
        started(run.pid)
        try:
            out, problems = run.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            run.kill()
            raise
    if run.returncode != status:
        sys.exit(f"bench: {' '.join(full)} ended with {run.returncode}:\n{out[-2000:]}\n{problems[-2000:]}")
    lines = []
    for line in out.splitlines():
        text = line.split("] ", 1)[-1]
        with contextlib.suppress(json.JSONDecodeError):
            if text.startswith("{"):
                lines.append(json.loads(text))
    return lines


def interleave(variants: dict[str, Callable[[], dict[str, float]]], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Every variant once a round, in turn; {variant: {figure: [one a round]}}."""
    results: dict[str, dict[str, list[float]]] = {name: {} for name in variants}
    for turn in range(rounds):
        for name, run in variants.items():
            print(f"\rround {turn + 1}/{rounds}: {name:<24}", end="", file=sys.stderr, flush=True)
            for figure, value in run().items():
                results[name].setdefault(figure, []).append(value)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    return results


def median(values: list[float]) -> float:
    return statistics.median(values)


def paired_ratio(peer: list[float], ours: list[float]) -> float:
    """Peer's time over ours, round by round, median: above 1 we are faster."""
    return statistics.median(p / o for p, o in zip(peer, ours))


def spread(values: list[float]) -> str:
    return f"{min(values):.4g}..{max(values):.4g}"


def conditions() -> Iterator[str]:
    import torch

    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?")
    yield f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores ({cpu}), Linux {platform.release()}, PyTorch {torch.__version__}, load {os.getloadavg()[0]:.1f}"


def print_header(title: str) -> None:
    print(f"# {title}")
    for line in conditions():
        print(f"# {line}")
    print(f"# {' '.join(['python', *sys.argv])}", flush=True)
