"""Rows of tables against ps-lite: until rows that were pushed are counted in, until they have been pulled, and word pairs counted in a text.

    python bench/table.py --pslite PROGRAM                             one machine: dense, sparse and small rows
    python bench/table.py --pslite PROGRAM --servers 2 --workers 2     the same, two of each
    python bench/table.py --pslite PROGRAM --rate 100mbit --cases 10000x64 4x250000 --repeats 3      a server and a worker on links
    python bench/table.py --pslite PROGRAM --text ossprose.tokens.txt.xz       pairs of words, counted exactly
    python bench/table.py --quick                                      a smoke test

PROGRAM is bench/peers/pslite_member.cc, compiled with ps-lite and linked to it outside this tree; without it Shoal is measured alone. One
of them runs at a time. ps-lite has TCP alone; on one machine Shoal runs through shared memory and over TCP.
"""

from __future__ import annotations

import argparse
import array
import lzma
import pathlib
import statistics
import sys
import tempfile

import pslite
import side_by_side as sbs

CASES = ["4x1000000", "10000x64", "1000000x1", "1x1"]
BLOCKS = 16


def summary(lines: list[dict]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for line in lines:
        case = line["case"]
        figures[f"{case}/cpu"] = figures.get(f"{case}/cpu", 0) + line["cpu"]
        if "times" not in line:
            continue
        if not line["right"]:
            sys.exit(f"bench: wrong sums in {case}")
        times = sorted(line["times"])
        figures[f"{case}/p50"] = statistics.median(times)
        figures[f"{case}/p99"] = times[min(len(times) - 1, int(0.99 * len(times)))]
    return figures


def run_shoal(lab: sbs.Lab, args: argparse.Namespace, program: str, arguments: list[str], shared: bool) -> dict[str, float]:
    command = [str(sbs.BUILD / "bench" / "table" / program), "--servers", str(args.servers), *arguments]
    return summary(sbs.run_members(lab, command, {"SHOAL_SHARED_MEMORY": str(int(shared))}))


def run_pslite(lab: sbs.Lab, args: argparse.Namespace, arguments: list[str]) -> dict[str, float]:
    """Servers on the first hosts, workers on the others."""
    hosts = list(range(args.servers + args.workers))
    return summary(pslite.run(lab, args.pslite, hosts[:args.servers], hosts[args.servers:], arguments))


def token_ids(text: pathlib.Path, folder: str, documents: int | None) -> pathlib.Path:
    """The words of each document as 32-bit numbers, by first appearance; documents end with 2^32 - 1."""
    numbers: dict[str, int] = {}
    ids = array.array("I")
    with lzma.open(text, "rt", encoding="utf-8") as lines:
        for count, line in enumerate(lines):
            if count == documents:
                break
            ids.extend(numbers.setdefault(word, len(numbers)) for word in line.split()[2:])
            ids.append(0xFFFFFFFF)
    path = pathlib.Path(folder, "ids")
    path.write_bytes(ids.tobytes())
    return path


def print_table(results: dict[str, dict[str, list[float]]], cases: list[str]) -> None:
    print(f"{'case':>10} {'who':>26} {'p50 ms':>9} {'spread':>18} {'p99 ms':>9} {'CPU ms':>9} {'ps-lite / this':>14}")
    for case in cases:
        for who, of in results.items():
            if f"{case}/p50" not in of:
                continue
            peer = who.replace("shoal", "ps-lite").partition(",")[0] if who.startswith("shoal") else None
            ratio = sbs.paired_ratio(results[peer][f"{case}/p50"], of[f"{case}/p50"]) if peer in results else None
            print(f"{case:>10} {who:>26} {1e3 * sbs.median(of[f'{case}/p50']):>9.3f} {sbs.spread([1e3 * v for v in of[f'{case}/p50']]):>18} "
                  f"{1e3 * sbs.median(of[f'{case}/p99']):>9.3f} {1e3 * sbs.median(of[f'{case}/cpu']):>9.3f} {f'{ratio:.2f}x' if ratio else '-':>14}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pslite", type=pathlib.Path, metavar="PROGRAM")
    parser.add_argument("--rate", help="links of a lab, e.g. 100mbit; without: one machine")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cases", nargs="+", default=CASES, help="rows x elements of a row")
    parser.add_argument("--operations", nargs="+", choices=["push", "pull"], default=["push", "pull"])
    parser.add_argument("--repeats", type=int, default=10, help="in a row; a hundred times as many where a case has one row")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text", type=pathlib.Path, help="count pairs of words in these documents instead: label, id, words; .xz")
    parser.add_argument("--documents", type=int, help="only the first")
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    args = parser.parse_args()
    if args.quick:
        args.cases, args.repeats, args.rounds = ["4x1000", "1x1"], 2, 1

    members, transports = args.servers + args.workers, [False] if args.rate else [True, False]
    variants = {}
    with tempfile.TemporaryDirectory() as folder, sbs.Lab(members, args.rate) as lab:
        if args.text:
            cases, ids = ["pairs"], str(token_ids(args.text, folder, args.documents))
            for shared in transports:
                variants[f"shoal pairs, {'memory' if shared else 'tcp'}"] = lambda shared=shared: run_shoal(lab, args, "bench_table_pairs", ["--ids", ids], shared)
            if args.pslite:
                variants["ps-lite pairs"] = lambda: run_pslite(lab, args, ["pairs", ids])
        else:
            cases = args.cases
            for operation in args.operations:
                # Pulled in one piece and, where links carry both ways at once, in blocks: of rows, which is all that ps-lite's keys allow, and of columns with us.
                for blocks in [1, BLOCKS] if operation == "pull" and args.rate else [1]:
                    name = operation + (f" in {blocks}" if blocks > 1 else "")

                    def once(run, blocks=blocks, operation=operation):
                        figures = {}
                        for case in cases:
                            figures |= run(case, operation, blocks, args.repeats * (100 if case.startswith("1x") else 1))
                        return figures

                    for shared in transports:
                        variants[f"shoal {name}, {'memory' if shared else 'tcp'}"] = lambda once=once, shared=shared: once(
                            lambda case, op, blocks, repeats: run_shoal(lab, args, "bench_table_push_pull", [
                                "--operation", op, "--blocks", str(blocks), "--repeats", str(repeats), "--cases", case], shared))
                    if args.pslite:
                        variants[f"ps-lite {name}"] = lambda once=once: once(
                            lambda case, op, blocks, repeats: run_pslite(lab, args, [op, str(blocks), str(repeats), "2", case]))
        results = sbs.interleave(variants, args.rounds)

    sbs.print_header(f"tables, {args.servers} + {args.workers}, {args.rate or 'one machine'}, {args.repeats} in a row, {args.rounds} rounds interleaved")
    print_table(results, cases)


if __name__ == "__main__":
    main()
