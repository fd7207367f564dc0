"""python -m shoal.train MODEL --data PLACE: trains on all members of the run and shows where the time went."""

import argparse
import os
import sys

import shoal

from ..errors import mistake
from ..models import MODELS
from .loop import train
from .tasks import Task


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


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, as everywhere; --help shows the flags."""

    def error(self, message: str):
        raise mistake(self.prog, message, f"{self.prog} --help lists the flags")


def main() -> None:
    parser = _Parser(prog="shoal train", description="Trains a model of the zoo (docs/models.md).")
    parser.add_argument("model", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--data", metavar="PLACE", help="where the model's data set is, or synthetic")
    parser.add_argument("--epochs", type=_positive(int), default=1)
    parser.add_argument("--batch", type=_positive(int), help="samples of one member in one step (default: the model's)")
    parser.add_argument("--lr", type=_positive(float), help="learning rate (default: 0.001 of Adam, 0.05 of SGD)")
    parser.add_argument("--sgd", type=momentum, metavar="MOMENTUM",
                        help="train by SGD with this momentum instead of Adam; 0 for a plan that gathers with momentum itself, as topk:0.01:0.9")
    parser.add_argument("--seed", type=int, default=1)
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
    if arguments.consistency is not None:
        if arguments.plan != "ps":
            raise mistake("--consistency", f"{arguments.plan} serves no parameters", "--plan ps --consistency ssp:3")
        arguments.plan = f"ps:{arguments.consistency}"
    task = Task(arguments.model)
    arguments.batch = arguments.batch or task.batch
    data = task.read(arguments.data, arguments.batch, arguments.seed)
    if arguments.tensorboard:
        os.environ["SHOAL_TENSORBOARD"] = arguments.tensorboard
    shoal.init()
    train(arguments, task, *data)


if __name__ == "__main__":
    sys.exit(main())
