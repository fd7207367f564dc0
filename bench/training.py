"""Training small models: Shoal beside DDP on gloo with its default and its best bucket, by link rate.

    python bench/training.py                                     N = 2 and 4, 50 to 1000 Mbit/s, every model
    python bench/training.py --rates 200mbit --members 4 --models lenet
    python bench/training.py --single                            one member beside plain PyTorch
    python bench/training.py --quick                             a smoke test

The best bucket of DDP is found first, by one run of each size; then everything is interleaved.
"""

from __future__ import annotations

import argparse

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "train_member.py")
BUCKETS = [0.05, 0.25, 1, 4, 25]
PORT = [29600]


def train(lab: sbs.Lab, way: str, model: str, batch: int, steps: int, bucket: float = 25) -> dict[str, float]:
    PORT[0] += 1
    command = [sbs.PYTHON, MEMBER, "--way", way, "--model", model, "--batch", str(batch), "--steps", str(steps),
               "--bucket-mb", str(bucket), "--store", f"{lab.address(0)}:{PORT[0]}"]
    before = lab.transmitted()
    line = sbs.run_members(lab, command, {"GLOO_SOCKET_IFNAME": lab.interface()})[-1]
    sent = [after - b for after, b in zip(lab.transmitted(), before)]
    return {"step": sbs.median(line["times"]), "cpu": line["cpu"], "sent": sbs.median(sent) if sent else 0}


def compare(rate: str | None, members: int, model: str, args: argparse.Namespace) -> None:
    with sbs.Lab(members, rate) as lab:
        by_bucket = {b: train(lab, "ddp", model, args.batch, max(5, args.steps // 3), b)["step"] for b in BUCKETS}
        best = min(by_bucket, key=by_bucket.__getitem__)
        results = sbs.interleave({
            "shoal": lambda: train(lab, "shoal", model, args.batch, args.steps),
            "ddp": lambda: train(lab, "ddp", model, args.batch, args.steps),
            "ddp best": lambda: train(lab, "ddp", model, args.batch, args.steps, best),
            "ddp on shoal": lambda: train(lab, "ddp-on-shoal", model, args.batch, args.steps, best),
        }, args.rounds)
    ours = results["shoal"]["step"]
    print(f"{model:>8} {members:>2} {rate or 'loopback':>9} {1e3 * sbs.median(ours):>9.2f} {sbs.spread([1e3 * v for v in ours]):>18} "
          f"{1e3 * sbs.median(results['ddp']['step']):>9.2f} {1e3 * sbs.median(results['ddp best']['step']):>9.2f} {best:>6} "
          f"{sbs.paired_ratio(results['ddp']['step'], ours):>8.3f}x {sbs.paired_ratio(results['ddp best']['step'], ours):>8.3f}x "
          f"{sbs.paired_ratio(results['ddp best']['step'], results['ddp on shoal']['step']):>8.3f}x "
          f"{sbs.median(results['shoal']['cpu']) / sbs.median(results['ddp best']['cpu']):>7.2f}", flush=True)


def single(args: argparse.Namespace) -> None:
    sbs.print_header("one member beside plain PyTorch")
    for model in args.models:
        with sbs.Lab(1, None) as lab:
            results = sbs.interleave({"shoal": lambda: train(lab, "shoal", model, args.batch, args.steps),
                                      "plain": lambda: train(lab, "plain", model, args.batch, args.steps)}, args.rounds)
        ours, plain = results["shoal"]["step"], results["plain"]["step"]
        print(f"{model:>8}: shoal {1e3 * sbs.median(ours):.3f} ms ({sbs.spread([1e3 * v for v in ours])}), plain {1e3 * sbs.median(plain):.3f} ms "
              f"({sbs.spread([1e3 * v for v in plain])}), plain/shoal {sbs.paired_ratio(plain, ours):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", default=["50mbit", "200mbit", "500mbit", "1gbit"])
    parser.add_argument("--members", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--models", nargs="+", default=["convnet", "lenet", "mlp"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    args = parser.parse_args()
    if args.quick:
        args.rates, args.members, args.models, args.steps, args.rounds = [None], [2], ["lenet"], 3, 1
    if args.single:
        single(args)
        return
    sbs.print_header(f"seconds a step, batch {args.batch} a member, medians of {args.rounds} interleaved runs of {args.steps} steps")
    print(f"{'model':>8} {'N':>2} {'rate':>9} {'shoal ms':>9} {'spread':>18} {'ddp ms':>9} {'best ms':>9} {'MB':>6} {'of ddp':>9} {'of best':>9} {'ddp/shoal':>9} {'cpu':>7}")
    for rate in args.rates:
        for members in args.members:
            for model in args.models:
                compare(rate, members, model, args)


if __name__ == "__main__":
    main()
