"""What each model of the zoo is trained on, and how well it does."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .. import models
from ..errors import mistake
from . import characters, cifar, fashion, multi30k
from .synthetic import Synthetic

SYNTHETIC = "synthetic"  # what --data says instead of a place


@dataclass
class DataSet:
    name: str
    read: Callable  # place -> (training, held out)
    place: str | None = None  # where Debian has it


_FASHION = DataSet("Fashion-MNIST", fashion.read, "/usr/share/datasets/fashion-mnist")
_CIFAR = DataSet("CIFAR-10", cifar.read)
_DATA = {"lenet": _FASHION, "fcnet": _FASHION, "cifar-quick": _CIFAR, "resnet-20": _CIFAR, "seq2seq": DataSet("Multi30k", multi30k.read),
         "char-transformer": DataSet("tiny Shakespeare", characters.read)}
# Samples of one member in one step. Of ImageNet's models and seq2seq those of the papers that time them (docs/models.md).
_BATCH = {"seq2seq": 32, "char-transformer": 16, "alexnet": 32, "overfeat-fast": 32, "vgg-a": 32, "vgg19": 32, "vgg19-22k": 32, "googlenet": 128,
          "inception-v3": 32, "resnet-50": 32, "resnet-152": 32, "cd-dnn": 128}
_USUAL_BATCH = 128


class Task:
    """Training one model: its loss, what it counts, and how well it does in the end."""

    def __init__(self, model: str):
        self.model = model
        self.described = models.describe(model)
        self.batch = _BATCH.get(model, _USUAL_BATCH)
        first = self.described["inputs"][0]
        self.is_text = first["words"] > 0
        # What one target is: an image, a frame of speech, a token.
        self.unit = "tokens" if self.is_text else "images" if len(first["shape"]) == 3 else "frames"

    def read(self, place: str | None, batch: int, seed: int) -> tuple:
        """(training, held out); of synthetic data nothing is held out."""
        known = _DATA.get(self.model)
        if place == SYNTHETIC:
            return Synthetic(self.described, batch, seed), None
        if known is None:
            raise mistake("--data", f"there is no reader for the data set of {self.model}", f"--data {SYNTHETIC} times it")
        place = place or known.place
        if place is None:
            raise mistake("--data", f"where is {known.name}?", f"--data PLACE trains on it, --data {SYNTHETIC} only times the model")
        return known.read(place)

    def loss(self, scores, targets: torch.Tensor) -> torch.Tensor:
        """The mean cross-entropy of the targets that there are, in nats, with the weighted ones of auxiliary classifiers."""
        if isinstance(scores, tuple):
            own, *auxiliary = (self.loss(each, targets) for each in scores)
            return own + sum(weight * loss for weight, loss in zip(self.described["auxiliary"], auxiliary))
        return F.cross_entropy(scores.flatten(0, -2), targets.flatten())


def count(targets: torch.Tensor) -> int:
    """Targets that are no padding."""
    return int((targets >= 0).sum())


@torch.no_grad()
def evaluate(model, task: Task, held_out, here) -> dict:
    """How well the model does on what it was not trained on; each member that is left looks at a part. A text: "loss" in nats a token and
    "perplexity", else "accuracy"."""
    model.eval()
    mine = torch.arange(here.place, len(held_out), len(here.members))
    right = nats = targets_seen = 0
    for chosen in mine.split(32 if task.is_text else 1000):
        *inputs, targets = held_out.batch(chosen)
        scores = model(*inputs)
        n = count(targets)
        nats += task.loss(scores, targets).item() * n
        right += int((scores.argmax(-1) == targets).sum())
        targets_seen += n
    parts = [part.decode().split() for part in here.gather(f"{right} {nats!r} {targets_seen}".encode(), "held-out result")]
    right, nats, seen = sum(int(part[0]) for part in parts), sum(float(part[1]) for part in parts), sum(int(part[2]) for part in parts)
    if not task.is_text:
        return {"accuracy": right / seen}
    return {"held_out_loss": nats / seen, "perplexity": float(torch.tensor(nats / seen, dtype=torch.float64).exp())}
