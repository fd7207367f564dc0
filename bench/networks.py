"""All-reduce on networks whose links differ, against PyTorch's gloo and Open MPI: the program that `shoal program build` makes for each network,
beside Shoal's ring, the bound (the payload that the tightest cut lets through) and what `shoal program price` foretold.

    python bench/networks.py                       64 MB, three networks, five rounds; needs root
    python bench/networks.py --networks slow sites --bytes 16777216
    python bench/networks.py --quick               a smoke test

The peers run in their best order of ranks: here that is the one given, hosts of a site beside each other.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import allreduce
import side_by_side as sbs

# What `shoal topo generate` makes of each.
NETWORKS = {
    "slow": ("one slow host of four: 3 x 500 and 100 Mbit/s", ["star", "--rates", "500mbit,500mbit,500mbit,100mbit"]),
    "mixed": ("mixed rates: 2 x 500, 2 x 250, 2 x 100 Mbit/s", ["star", "--rates", "500mbit,500mbit,250mbit,250mbit,100mbit,100mbit"]),
    "sites": ("two sites of four hosts: 500 Mbit/s, 100 Mbit/s between them", ["sites", "2x4", "--rate", "500mbit", "--uplink", "100mbit"]),
    "equal": ("four equal hosts: 500 Mbit/s", ["star", "4", "--rate", "500mbit"]),
}


def members_of(name: str, folder: pathlib.Path) -> tuple[str, int]:
    """The file of a network that is made here, and its hosts."""
    topology = folder / f"{name}.json"
    ask("topo", "generate", *NETWORKS[name][1], "-o", str(topology))
    return str(topology), len(json.loads(topology.read_text())["compute"])


def ask(*words: str) -> str:
    return subprocess.run([sbs.shoal(), *words], check=True, capture_output=True, text=True).stdout


def run_program(lab: sbs.Lab, program: str, size: int, repeats: int) -> dict[str, float]:
    bench = sbs.BUILD / "bench" / "collective" / "bench_allreduce"
    return allreduce.summary(sbs.run_members(lab, [str(bench), "--repeats", str(repeats), "--warmup", "1", "--program", program, "--sizes", str(size)]))


def measure(name: str, args, folder: pathlib.Path, port: list[int]) -> None:
    title, program = NETWORKS[name][0], folder / f"{name}.program.json"
    topology, members = members_of(name, folder)
    ask("program", "build", topology, "-o", str(program))
    price = json.loads(ask("program", "price", str(program), "--topology", topology, "--bytes", str(args.bytes), "--json"))
    with sbs.Lab(members, title, topology) as lab:
        variants = {
            "shoal": lambda: run_program(lab, str(program), args.bytes, args.repeats),
            "shoal ring": lambda: run_program(lab, "ring", args.bytes, args.repeats),
            "gloo": lambda: allreduce.run_gloo(lab, [args.bytes], args.repeats, 1, port),
        }
        if shutil.which("mpicc"):
            mpi = folder / "mpi_allreduce"
            subprocess.run(["mpicc", "-O2", "-o", mpi, sbs.ROOT / "bench" / "peers" / "mpi_allreduce.c"], check=True)
            variants["mpi"] = lambda: allreduce.run_mpi(lab, mpi, [args.bytes], args.repeats, 1, False)
        results = sbs.interleave(variants, args.rounds)
    ours = results["shoal"][f"{args.bytes}/p50"]
    print(f"{title}: bound {price['bound_seconds']:.3f} s, price {price['seconds']:.3f} s, executed / price {sbs.median(ours) / price['seconds']:.3f}")
    for who, of in results.items():
        times = of[f"{args.bytes}/p50"]
        print(f"  {who:<12} {sbs.median(times):8.3f} s {sbs.spread(times):>18}   {price['bound_seconds'] / sbs.median(times):5.2f} of the bound"
              f"   shoal is {sbs.paired_ratio(times, ours):5.2f}x")
    sys.stdout.flush()


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=["slow", "mixed", "sites"])
    parser.add_argument("--bytes", type=int, default=64_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="all-reduces in a row")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.quick:
        args.networks, args.bytes, args.repeats, args.rounds = ["slow"], 1_000_000, 1, 1
    sbs.print_header(f"all-reduce of {args.bytes / 1e6:g} MB, {args.repeats} in a row, {args.rounds} rounds interleaved")
    port = [29900]
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            measure(name, args, pathlib.Path(folder), port)


if __name__ == "__main__":
    main()
