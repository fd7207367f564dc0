"""python -m shoal.train fcnet|lenet --data DIR: trains on all members of the run and shows where the time went."""

import argparse
import os
import sys

import shoal

from ..errors import mistake
from . import fashion, models
from .loop import train


def _positive(kind):
    def convert(text: str):
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError
        return value

    convert.__name__ = f"positive {kind.__name__}"
    return convert


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, as everywhere; --help shows the flags."""

    def error(self, message: str):
        raise mistake(self.prog, message, f"{self.prog} --help lists the flags")


def main() -> None:
    parser = _Parser(prog="shoal train", description="Trains a known model on Fashion-MNIST.")
    parser.add_argument("model", choices=sorted(models.MODELS))
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the four IDX files")
    parser.add_argument("--epochs", type=_positive(int), default=1)
    parser.add_argument("--batch", type=_positive(int), default=128, help="images of one member in one step")
    parser.add_argument("--lr", type=_positive(float), default=1e-3, help="learning rate of Adam")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=_positive(int), help="end after so many steps")
    parser.add_argument("--plan", default="auto", help="auto, or a saved plan.json to replay")
    parser.add_argument("--checkpoint", metavar="DIR", help="save the state of the training there, while it goes on")
    parser.add_argument("--every", type=_positive(int), help="steps from one checkpoint to the next (default: 100)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint, if there is one")
    parser.add_argument("--tensorboard", metavar="DIR", help="curves for TensorBoard, written by rank 0")
    parser.add_argument("--json", action="store_true", help="lines for machines on stdout")
    arguments = parser.parse_args()
    training, test = fashion.read(arguments.data)
    if arguments.tensorboard:
        os.environ["SHOAL_TENSORBOARD"] = arguments.tensorboard
    shoal.init()
    train(arguments, training, test)


if __name__ == "__main__":
    sys.exit(main())
