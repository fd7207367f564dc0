"""Training: Shoal beside DDP on gloo with its default and its best bucket, by link rate; what its plan predicted, and other plans beside it.

    python bench/training.py                                     N = 2 and 4, 50 to 1000 Mbit/s, every model
    python bench/training.py --rates 200mbit --members 4 --models lenet
    python bench/training.py --models char-transformer --data input.txt --batch 8 --plans wfbp p3
    python bench/training.py --compile                           every way compiled; --autocast: in bfloat16
    python bench/training.py --networks slow sites --models fcnet lenet      on networks whose links differ (bench/networks.py)
    python bench/training.py --replay --models resnet-50 vgg19 --buckets 1 25    large ones: bytes are real, computing is what rank 0 recorded
    python bench/training.py --replay --bounded --models vgg19 --rates 20mbit    where a step of DDP takes minutes
    python bench/training.py --models fcnet --device cuda --rates 0          models on a GPU that all members share; rate 0: loopback
    python bench/training.py --ratios 1 2 --models char-transformer          links whose rates make C/(F+B) so
    python bench/training.py --single                            one member beside plain PyTorch
    python bench/training.py --quick                             a smoke test

The members train in all ways in turns (bench/peers/train_member.py), after one turn of each bucket size has found DDP's best. The column `order`: how many
times as fast as DDP's best whole gradients could be in whatever order; above that is what fewer bytes win.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile

import networks
import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "train_member.py")
STORE_PORT = 29600
BUCKETS = [0.05, 0.25, 1, 4, 25]  # the last is DDP's default


def train(lab: sbs.Lab, args: argparse.Namespace) -> list[dict]:
    command = [sbs.PYTHON, MEMBER, "--models", *args.models, "--batch", str(args.batch), "--steps", str(args.steps),
               "--rounds", str(args.rounds), "--turn", str(args.turn), "--store", f"{lab.address(0)}:{STORE_PORT}",
               "--warmup", str(args.warmup), "--data", args.data, "--places", str(args.places), "--device", args.device, "--plans", *args.plans,
               "--buckets", *map(str, args.buckets), *(flag for flag in ("--autocast", "--compile", "--replay", "--asleep", "--bounded") if getattr(args, flag[2:]))]
    return sbs.run_members(lab, command, {"GLOO_SOCKET_IFNAME": lab.interface()}, timeout=7200)


def ratio_at_a_gigabit(members: int, args: argparse.Namespace) -> float:
    """C/(F+B) of args.models' only model on links of 1 Gbit/s, from a short run."""
    short = argparse.Namespace(**{**vars(args), "rounds": 1, "steps": 2, "plans": [], "buckets": [25.0]})
    with sbs.Lab(members, "1gbit") as lab:
        (line,) = train(lab, short)
    return line["plan"]["link / computing"]


def compare(rate: str | None, members: int, args: argparse.Namespace, topology: str | None = None) -> list[dict]:
    """Prints a line for each model; returns them with what summary() wants of each."""
    with sbs.Lab(members, rate, topology) as lab:
        lines = train(lab, args)
    for line in lines:
        times, cpu = line["times"], line["cpu"]
        ours, best = times["shoal"], times["ddp best"]
        print(f"{line['model']:>8} {members:>2} {rate or 'loopback':>9} {line['steps']:>6} {1e3 * sbs.median(ours):>9.2f} "
              f"{sbs.spread([1e3 * v for v in ours]):>18} {1e3 * sbs.median(times['ddp']):>9.2f} {1e3 * sbs.median(best):>9.2f} "
              f"{line['bucket']:>6} {sbs.paired_ratio(times['ddp'], ours):>8.3f}x {sbs.paired_ratio(best, ours):>8.3f}x "
              f"{on_shoal(times):>9} {sbs.paired_ratio(cpu['ddp best'], cpu['shoal']):>7.2f}x "
              f"{line['plan']['link / computing']:>6.2f} {sbs.median(best) / line['plan']['ideal']:>6.2f} {predicted(line, 'shoal'):>6.2f}  {line['plan']['order']}: "
              f"{', '.join(f'{count} {way}' for way, count in line['plan']['ways'].items())}", flush=True)
        for plan in args.plans:
            way = f"shoal {plan}"
            print(f"{'':>9}{plan:>24} {1e3 * sbs.median(times[way]):>9.2f} {sbs.spread([1e3 * v for v in times[way]]):>18} "
                  f"shoal is {sbs.paired_ratio(times[way], ours):.3f}x, predicted {predicted(line, way):.2f}", flush=True)
        line["cell"] = f"{line['model']} N={members} {rate or 'loopback'}"
    return lines


def summary(cells: list[dict], plans: list[str]) -> None:
    """Of all cells: beside DDP's best bucket, how far predictions are off, and what choosing costs beside the best of the other plans."""
    beside = sorted((sbs.paired_ratio(c["times"]["ddp best"], c["times"]["shoal"]), c["cell"]) for c in cells)
    off = sorted((abs(predicted(c, "shoal") - 1), c["cell"]) for c in cells)
    print(f"{len(cells)} cells: of DDP's best bucket the least is {beside[0][0]:.3f}x ({beside[0][1]}), below 0.97x are "
          f"{', '.join(f'{cell} {ratio:.3f}x' for ratio, cell in beside if ratio < 0.97) or 'none'}")
    print(f"predictions are off by {sbs.median([error for error, _ in off]):.1%} in the median, beyond 20 % are "
          f"{', '.join(f'{cell} {error:.0%}' for error, cell in off if error > 0.2) or 'none'}")
    if plans:
        regrets = sorted((max(sbs.paired_ratio(c["times"]["shoal"], c["times"][f"shoal {plan}"]) for plan in plans) - 1, c["cell"]) for c in cells)
        print(f"beside the best of {', '.join(plans)}: {sbs.median([regret for regret, _ in regrets]):+.1%} in the median, beyond 5 % are "
              f"{', '.join(f'{cell} {regret:+.0%}' for regret, cell in regrets if regret > 0.05) or 'none'}")


def on_shoal(times: dict[str, list[float]]) -> str:
    return f"{sbs.paired_ratio(times['ddp best'], times['ddp on shoal']):.3f}x" if "ddp on shoal" in times else "-"


def predicted(line: dict, way: str) -> float:
    """What the plan predicted of an iteration over what was measured."""
    return line["predicted"][way] / sbs.median(line["times"][way])


def single(args: argparse.Namespace) -> None:
    sbs.print_header("seconds a step: one member beside plain PyTorch")
    with sbs.Lab(1, None) as lab:
        lines = train(lab, args)
    for line in lines:
        ours, plain = line["times"]["shoal"], line["times"]["plain"]
        print(f"{line['model']:>8}: shoal {1e3 * sbs.median(ours):.3f} ms ({sbs.spread([1e3 * v for v in ours])}), plain {1e3 * sbs.median(plain):.3f} ms "
              f"({sbs.spread([1e3 * v for v in plain])}), plain/shoal {sbs.paired_ratio(plain, ours):.4f}, "
              f"CPU {sbs.paired_ratio(line['cpu']['plain'], line['cpu']['shoal']):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", nargs="+", default=["50mbit", "200mbit", "500mbit", "1gbit"], help="0: loopback, with what it has")
    parser.add_argument("--ratios", type=float, nargs="+", default=[], help="instead of rates: of communication over computing, C/(F+B)")
    parser.add_argument("--members", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--networks", nargs="+", choices=networks.NETWORKS, default=[], help="instead of rates and members")
    parser.add_argument("--models", nargs="+", default=["convnet", "lenet", "mlp"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=0, help="of a turn; 0: as many as take --turn seconds")
    parser.add_argument("--turn", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default="synthetic", help="where the data of a model of the zoo is")
    parser.add_argument("--places", type=int, default=1000, help="of a text, at most")
    parser.add_argument("--plans", nargs="*", default=[], help="plans beside what Shoal chooses, for instance wfbp p3 poseidon")
    parser.add_argument("--warmup", type=int, default=8, help="steps of each way before the first turn")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where models lie; all members share the first GPU")
    parser.add_argument("--autocast", action="store_true", help="forward in bfloat16, in every way")
    parser.add_argument("--compile", action="store_true", help="torch.compile around every way")
    parser.add_argument("--replay", action="store_true", help="computing of models of the zoo asleep, as it was recorded: bench/peers/replayed.py")
    parser.add_argument("--asleep", action="store_true", help="with --replay: fully connected layers, too, so that members share no cores")
    parser.add_argument("--bounded", action="store_true", help="DDP is not run: what it takes at least, in whatever buckets, stands in for it")
    parser.add_argument("--buckets", type=float, nargs="+", default=BUCKETS, help="of DDP, MB; the last is called its default")
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--quick", action="store_true", help="tiny: does it run?")
    args = parser.parse_args()
    if any(ratio <= 0 for ratio in args.ratios):
        parser.error("--ratios are above zero")
    if args.bounded and (args.single or 1 in args.members):
        parser.error("--bounded is of DDP, which one member does without")
    if args.quick:
        args.rates, args.members, args.models, args.steps, args.rounds = ["0"], [2], ["lenet"], 3, 1
    if args.single:
        single(args)
        return
    sbs.print_header(f"ms a step, batch {args.batch} a member, medians of {args.rounds} rounds of turns; ratios above 1: we are faster{'; computing as recorded, asleep' if args.replay else ''}"
                     f"{'; of DDP what it takes at least' if args.bounded else ''}")
    print(f"{'model':>8} {'N':>2} {'rate':>9} {'steps':>6} {'shoal ms':>9} {'spread':>18} {'ddp ms':>9} {'best ms':>9} {'MB':>6} {'of ddp':>9} {'of best':>9} {'ddp/shoal':>9} {'cpu':>8} {'C/(F+B)':>7} {'order':>5} {'pred':>6}  plan")
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            topology, members = networks.members_of(name, pathlib.Path(folder))
            cells += compare(name, members, args, topology)
    for model in args.models if args.ratios else []:
        of_model = argparse.Namespace(**{**vars(args), "models": [model]})
        for members in args.members:
            megabits = 1000 * ratio_at_a_gigabit(members, of_model)
            for ratio in args.ratios:
                cells += compare(f"{max(1, round(megabits / ratio))}mbit", members, of_model)
    for rate in [] if args.networks or args.ratios else args.rates:
        for members in args.members:
            cells += compare(None if rate == "0" else rate, members, args)
    if cells:
        summary(cells, args.plans)


if __name__ == "__main__":
    main()
