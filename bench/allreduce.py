"""All-reduce against PyTorch's gloo and Open MPI (yielding), and against what four iperf3 flows reach. On one machine Shoal and
Open MPI run twice: through shared memory and over TCP on the loopback. "going on" is Shoal where the others go on without lost members.

    python bench/allreduce.py --rate 1gbit --sizes 8MB 64MB      four hosts on 1 Gbit/s links
    python bench/allreduce.py --sizes 64MB                        one machine
    python bench/allreduce.py --sizes 4KB 64KB --repeats 200      small ones on one machine
    python bench/allreduce.py --quick                             a smoke test
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile

import side_by_side as sbs

UNITS = {"": 1, "B": 1, "KB": 1024, "MB": 1 << 20}


def parse_size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*(B|KB|MB|)", text)
    if not found:
        raise argparse.ArgumentTypeError(f'"{text}" is not a size such as 4KB or 64MB')
    return int(found[1]) * UNITS[found[2]]


def summary(lines: list[dict]) -> dict[str, float]:
    figures = {}
    for line in lines:
        if not line["right"]:
            sys.exit(f"bench: a wrong sum at {line['bytes']} bytes")
        times = sorted(line["times"])
        figures[f"{line['bytes']}/p50"] = statistics.median(times)
        figures[f"{line['bytes']}/mean"] = statistics.fmean(times)
        figures[f"{line['bytes']}/p99"] = times[min(len(times) - 1, int(0.99 * len(times)))]
        figures[f"{line['bytes']}/cpu"] = line["cpu"]
    return figures


def run_shoal(lab: sbs.Lab, sizes: list[int], repeats: int, warmup: int, shared: bool, on_peer_lost: str = "fail") -> dict[str, float]:
    program = sbs.BUILD / "bench" / "collective" / "bench_allreduce"
    command = [str(program), "--repeats", str(repeats), "--warmup", str(warmup), "--sizes", *map(str, sizes)]
    return summary(sbs.run_members(lab, command, {"SHOAL_SHARED_MEMORY": str(int(shared)), "SHOAL_ON_PEER_LOST": on_peer_lost}))


def run_gloo(lab: sbs.Lab, sizes: list[int], repeats: int, warmup: int, port: list[int]) -> dict[str, float]:
    port[0] += 1
    member = sbs.ROOT / "bench" / "peers" / "gloo_allreduce.py"
    command = [sbs.PYTHON, str(member), "--store", f"{lab.address(0)}:{port[0]}", "--repeats", str(repeats), "--warmup", str(warmup), "--sizes", *map(str, sizes)]
    return summary(sbs.run_members(lab, command, {"GLOO_SOCKET_IFNAME": lab.interface()}))


def run_mpi(lab: sbs.Lab, program: pathlib.Path, sizes: list[int], repeats: int, warmup: int, shared: bool) -> dict[str, float]:
    one_way = ["--mca", "btl", "vader,self" if shared else "tcp,self", "--mca", "pml", "ob1", "--mca", "mpi_yield_when_idle", "1"]
    arguments = [str(program), str(repeats), str(warmup), *map(str, sizes)]
    with tempfile.TemporaryDirectory() as folder:
        if lab.rate:
            agent = pathlib.Path(folder, "agent")
            hosts = ",".join(f"{lab.address(h)}:1" for h in range(lab.members))
            by_address = "\n".join(f"{lab.address(h)}) host={h};;" for h in range(lab.members))
            agent.write_text(f'#!/bin/sh\naddress=$1; shift\ncase $address in\n{by_address}\nesac\nexec {sbs.shoal()} lab exec {lab.name} $host -- sh -c "$*"\n')
            agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
            command = ["mpirun", "--allow-run-as-root", "--host", hosts, "-n", str(lab.members), "--mca", "plm_rsh_agent", str(agent), "--mca", "plm_rsh_no_tree_spawn", "1",
                       "--mca", "btl_tcp_if_include", "c0", "--mca", "oob_tcp_if_include", "c0", *one_way, *arguments]
            command = lab.exec(0, command)
        else:
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(lab.members), "--mca", "btl_tcp_if_include", "lo", *one_way, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if ran.returncode:
        sys.exit(f"bench: {' '.join(command)} ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return summary([json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")])


def run_iperf(lab: sbs.Lab, seconds: int) -> dict[str, float]:
    """Four flows at once, each host to the next: what the links carry, in bytes/s a flow."""
    servers = [subprocess.Popen(lab.exec(h, ["iperf3", "-s", "-1", "-p", "5301", "--forceflush"]), stdout=subprocess.PIPE, text=True) for h in range(lab.members)]
    try:
        for server in servers:
            server.stdout.readline()  # "-----": about to listen
            server.stdout.readline()  # "Server listening ..."
        clients = [subprocess.Popen(lab.exec(h, ["iperf3", "-c", lab.address((h + 1) % lab.members), "-p", "5301", "-t", str(seconds), "-J"]), stdout=subprocess.PIPE, text=True)
                   for h in range(lab.members)]
        rates = [json.loads(c.communicate(timeout=seconds + 30)[0])["end"]["sum_received"]["bits_per_second"] / 8 for c in clients]
    finally:
        for server in servers:
            server.kill()
            server.wait()
    return {"rate": statistics.fmean(rates)}


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--sizes", type=parse_size, nargs="+", default=[8 << 20, 64 << 20])
    parser.add_argument("--repeats", type=int, default=10, help="all-reduces in a row")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.quick:
        args.sizes, args.repeats, args.rounds, args.members = [4096, 100_000], 2, 1, 2
    warmup = min(args.repeats, 20)
    port = [29700]
    with tempfile.TemporaryDirectory() as folder, sbs.Lab(args.members, args.rate) as lab:
        one_machine = args.rate is None
        variants = {
            "shoal": lambda: run_shoal(lab, args.sizes, args.repeats, warmup, one_machine),
            "going on": lambda: run_shoal(lab, args.sizes, args.repeats, warmup, one_machine, "shrink"),
            "gloo": lambda: run_gloo(lab, args.sizes, args.repeats, warmup, port),
        }
        if one_machine:
            variants["shoal tcp"] = lambda: run_shoal(lab, args.sizes, args.repeats, warmup, False)
        if shutil.which("mpicc"):
            program = pathlib.Path(folder, "mpi_allreduce")
            subprocess.run(["mpicc", "-O2", "-o", program, sbs.ROOT / "bench" / "peers" / "mpi_allreduce.c"], check=True)
            if one_machine:
                variants["mpi shared"] = lambda: run_mpi(lab, program, args.sizes, args.repeats, warmup, True)
            variants["mpi tcp"] = lambda: run_mpi(lab, program, args.sizes, args.repeats, warmup, False)
        if args.rate and shutil.which("iperf3"):
            variants["iperf3"] = lambda: run_iperf(lab, 3)
        results = sbs.interleave(variants, args.rounds)

    sbs.print_header(f"all-reduce, {args.members} members, {args.rate or 'one machine'}, {args.repeats} in a row, {args.rounds} rounds interleaved")
    iperf = sbs.median(results["iperf3"]["rate"]) if "iperf3" in results else None
    if iperf:
        print(f"iperf3, {args.members} flows at once: {iperf * 8 / 1e6:.1f} Mbit/s each")
    print(f"{'size':>10} {'who':>10} {'p50 ms':>9} {'spread':>18} {'p99 ms':>9} {'CPU s':>8} {'bus MB/s':>9} {'of iperf3':>9} {'shoal is':>9}")
    for size in args.sizes:
        for who in ("shoal", "going on", "shoal tcp", "gloo", "mpi shared", "mpi tcp"):
            if who not in results:
                continue
            of = results[who]
            bus = 2 * (args.members - 1) / args.members * size / sbs.median(of[f"{size}/mean"])
            ratio = sbs.paired_ratio(of[f"{size}/p50"], results["shoal"][f"{size}/p50"])
            print(f"{size:>10} {who:>10} {1e3 * sbs.median(of[f'{size}/p50']):>9.3f} {sbs.spread([1e3 * v for v in of[f'{size}/p50']]):>18} "
                  f"{1e3 * sbs.median(of[f'{size}/p99']):>9.3f} {sbs.median(of[f'{size}/cpu']):>8.4f} {bus / 1e6:>9.1f} "
                  f"{f'{bus / iperf:.3f}' if iperf else '-':>9} {f'{ratio:.2f}x' if who != 'shoal' else '-':>9}")


if __name__ == "__main__":
    main()
