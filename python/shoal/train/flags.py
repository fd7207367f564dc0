"""The flags of `shoal train`, and what is wrong with them.

Of the standard library alone: before any member starts, app/train.cc runs this file by itself, which takes no import of PyTorch. Each member reads its
flags here again: other launchers start shoal.train, too.
"""

import argparse
import os


class Parser(argparse.ArgumentParser):
    """One line for a mistake, as everywhere; --help shows the flags."""

    def error(self, message: str):
        self.refuse(self.prog, message, f"{self.prog} --help lists the flags")

    def refuse(self, where: str, what: str, hint: str):
        self.exit(2, f"shoal: {where}: {what} ({hint})\n")


def _positive(kind):
    def convert(text: str):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError
        return value

    convert.__name__ = f"positive {kind.__name__}"
    return convert


def momentum(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError
    return value


def seed(text: str) -> int:
    value = int(text)
    if not -(1 << 63) <= value < 1 << 64:  # what PyTorch's generators take
        raise ValueError
    return value


def read(models=()) -> argparse.Namespace:
    """models: names, for --help."""
    parser = Parser(prog="shoal train", description="Trains a model of the zoo (docs/models.md).")
    parser.add_argument("model", metavar="MODEL", help=", ".join(models))
    parser.add_argument("--data", metavar="PLACE", help="where the model's data set is, or synthetic")
    parser.add_argument("--epochs", type=_positive(int), default=1)
    parser.add_argument("--batch", type=_positive(int), help="samples of one member in one step (default: the model's)")
    parser.add_argument("--lr", type=_positive(float), help="learning rate (default: 0.001 of Adam, 0.05 of SGD)")
    parser.add_argument("--sgd", type=momentum, metavar="MOMENTUM",
                        help="train by SGD with this momentum instead of Adam; 0 for a plan that gathers with momentum itself, as topk:0.01:0.9")
    parser.add_argument("--seed", type=seed, default=1)
    parser.add_argument("--steps", type=_positive(int), help="end after so many steps")
    parser.add_argument("--plan", default="auto", help="auto, or a saved plan.json to replay")
    parser.add_argument("--consistency",
                        help="with --plan ps: how stale parameters may be: bsp, ssp:3, essp:3, cap:3, vap:0.1, async (a name that is none lists all)")
    parser.add_argument("--checkpoint", metavar="DIR", help="save the state of the training there, while it goes on")
    parser.add_argument("--every", type=_positive(int), help="steps from one checkpoint to the next (default: 100)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint, if there is one")
    parser.add_argument("--tensorboard", metavar="DIR", help="curves for TensorBoard, written by rank 0")
    parser.add_argument("--json", action="store_true", help="lines for machines on stdout")
    arguments = parser.parse_args()
    if arguments.checkpoint and os.environ.get("SHOAL_RESUME", "0").lower() not in ("", "0", "false"):
        arguments.resume = True  # a run that `shoal run` begins again has no other way to say so
    if arguments.resume and not arguments.checkpoint:
        parser.refuse("--resume", "from which folder?", "add --checkpoint DIR")
    if arguments.every and not arguments.checkpoint:
        parser.refuse("--every", "into which folder?", "add --checkpoint DIR")
    if arguments.consistency is not None:
        if arguments.plan.startswith("ps:"):
            parser.refuse("--consistency", f"--plan {arguments.plan} says how stale parameters may be", f"--plan ps --consistency {arguments.consistency}, or --plan alone")
        if arguments.plan != "ps":
            parser.refuse("--consistency", f"{arguments.plan} serves no parameters", "--plan ps --consistency ssp:3")
        arguments.plan = f"ps:{arguments.consistency}"
    return arguments


if __name__ == "__main__":
    read()
