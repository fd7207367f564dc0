"""DistributedDataParallel on one machine with its buckets in ordinary memory and in memory that the other members read where it lies
(DDP_DISABLE_COMM_MEM=0): bytes sent, bytes of them that were not copied into a ring, time and CPU-seconds of a step. In turns, in the same processes.

    python bench/zero_copy.py                     four members, 64 MB of gradients
    python bench/zero_copy.py --members 2 --megabytes 256
    python bench/zero_copy.py --quick             a smoke test
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def member(args: argparse.Namespace) -> None:
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    import shoal  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    distributed.init_process_group("shoal", init_method=f"file://{args.store}", rank=args.rank, world_size=args.members)
    backend = distributed.group.WORLD._get_backend(torch.device("cpu"))
    side = max(1, round((args.megabytes * (1 << 20) / 4 / args.layers) ** 0.5))
    x = torch.randn(1, side, generator=torch.Generator().manual_seed(args.rank))
    nets = {}
    for lent in (False, True):
        os.environ["DDP_DISABLE_COMM_MEM"] = "0" if lent else "1"
        torch.manual_seed(1)
        net = torch.nn.Sequential(*(torch.nn.Linear(side, side, bias=False) for _ in range(args.layers)))
        nets[lent] = DistributedDataParallel(net, gradient_as_bucket_view=True)
    figures = {lent: {"times": [], "cpu": [], "sent": 0, "not copied": 0} for lent in nets}
    for turn in range(-2, args.repeats):  # the first two make the buckets
        for lent, net in nets.items():
            os.environ["DDP_DISABLE_COMM_MEM"] = "0" if lent else "1"  # also asked when buckets are made anew
            distributed.barrier()
            sent, cpu, began = backend.sent, time.process_time(), time.perf_counter()
            net(x).sum().backward()
            took, spent, after = time.perf_counter() - began, time.process_time() - cpu, backend.sent
            if turn < 0:
                continue
            of = figures[lent]
            of["times"].append(took)
            of["cpu"].append(spent)
            of["sent"] += after[0] - sent[0]
            of["not copied"] += after[1] - sent[1]
    for one, other in zip(nets[False].parameters(), nets[True].parameters()):
        assert torch.equal(one.grad, other.grad), "the two give other gradients"
    everybody = [None] * args.members
    distributed.all_gather_object(everybody, figures)
    if args.rank == 0:
        print(json.dumps([{lent: of[lent] for lent in (False, True)} for of in everybody]))
    distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=64, help="of gradients")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=20, help="steps of each kind")
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.quick:
        args.members, args.megabytes, args.repeats = 2, 1, 2
    if args.rank is not None:
        return member(args)
    with tempfile.TemporaryDirectory() as folder:
        same = [sys.executable, __file__, "--members", str(args.members), "--megabytes", str(args.megabytes), "--layers", str(args.layers),
                "--repeats", str(args.repeats), "--store", folder + "/store"]
        members = [subprocess.Popen([*same, "--rank", str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(args.members)]
        outputs = [process.communicate(timeout=300)[0] for process in members]
    if any(process.returncode for process in members):
        sys.exit("bench: a member failed")
    everybody = json.loads(outputs[0].splitlines()[-1])
    print(f"{args.members} members of one machine, {args.megabytes} MB of gradients in {args.layers} layers, {args.repeats} steps in turns")
    print(f"{'buckets':>20} {'ms a step':>10} {'least':>8} {'CPU ms':>8} {'MB sent':>9} {'not copied':>11}")
    medians = {}
    for lent in ("false", "true"):
        times = [t for of in everybody for t in of[lent]["times"]]
        medians[lent] = statistics.median(times)
        steps = args.repeats * args.members
        sent, spared = (sum(of[lent][key] for of in everybody) / steps / (1 << 20) for key in ("sent", "not copied"))
        cpu = sum(sum(of[lent]["cpu"]) for of in everybody) / steps
        name = "lent" if lent == "true" else "ordinary memory"
        print(f"{name:>20} {1e3 * medians[lent]:10.1f} {1e3 * min(times):8.1f} {1e3 * cpu:8.1f} {sent:9.1f} {spared:11.1f}")
    print(f"ordinary / lent: {medians['false'] / medians['true']:.2f}")


if __name__ == "__main__":
    main()
