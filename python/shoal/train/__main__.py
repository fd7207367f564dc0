"""python -m shoal.train MODEL --data PLACE: trains on all members of the run and shows where the time went."""

import os
import sys

import shoal

from ..models import MODELS
from .flags import read
from .loop import train
from .tasks import Task


def main() -> None:
    arguments = read(MODELS)
    task = Task(arguments.model)
    arguments.batch = arguments.batch or task.batch
    data = task.read(arguments.data, arguments.batch, arguments.seed)
    if arguments.tensorboard:
        os.environ["SHOAL_TENSORBOARD"] = arguments.tensorboard
    shoal.init()
    train(arguments, task, *data)


if __name__ == "__main__":
    sys.exit(main())
