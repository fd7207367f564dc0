"""Time to a fixed validation loss on Fashion-MNIST by ways that say less, or less often, beside the exact one: seconds, steps, bytes.

    python bench/time_to_loss.py --rate 100mbit -n 4
    python bench/time_to_loss.py --rate 50mbit --plans auto local:8 --target 0.5 --data DIR
    python bench/time_to_loss.py --quick                         a smoke test

Every plan trains the same model from the same values on the same batches until the loss of held-out images is at most the target, or the steps
are spent (bench/peers/loss_member.py). Looking at the loss is not timed. One run each by one seed: what differs little may be chance.
"""

from __future__ import annotations

import side_by_side as sbs

MEMBER = str(sbs.ROOT / "bench" / "peers" / "loss_member.py")
PLANS = ["auto", "local:8", "diloco:16", "diloco:16:4", "bf16", "int8", "topk:0.01", "powersgd:4"]


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--plans", nargs="+", default=PLANS)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="Fashion-MNIST")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--target", type=float, default=0.45, help="nats an image")
    parser.add_argument("--steps", type=int, default=960, help="at most")
    parser.add_argument("--every", type=int, default=32, help="steps from one look at the loss to the next")
    args = parser.parse_args()
    if args.quick:
        args.members, args.plans, args.steps, args.target = 2, ["auto", "local:8", "diloco:16:2"], 32, 2.2
    sbs.print_header(f"{args.model} on Fashion-MNIST to a held-out loss of {args.target}: {args.members} members, {args.rate or 'loopback'}, "
                     f"{args.batch} images a member")
    print(f"{'plan':>12} {'loss':>7} {'seconds':>8} {'steps':>6} {'ms a step':>10} {'MB a member':>12} {'auto/it':>8}")
    with sbs.Lab(args.members, args.rate) as lab:
        command = [sbs.PYTHON, MEMBER, "--model", args.model, "--plans", *args.plans, "--data", args.data, "--batch", str(args.batch),
                   "--target", str(args.target), "--steps", str(args.steps), "--every", str(args.every)]
        lines = sbs.run_members(lab, command, timeout=1800)
    for line in lines:
        reached = line["loss"] <= args.target
        gain = f"{lines[0]['seconds'] / line['seconds']:.2f}x" if reached and lines[0]["loss"] <= args.target else "-"
        print(f"{line['plan']:>12} {line['loss']:>7.4f} {line['seconds']:>8.1f} {line['steps']:>6} {1e3 * line['seconds'] / line['steps']:>10.1f} "
              f"{line['bytes'] / 1e6:>12.1f} {gain:>8}" + ("" if reached else "  not reached"), flush=True)


if __name__ == "__main__":
    main()
