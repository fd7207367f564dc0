"""The models that `shoal train` knows, by name."""

import math

from torch import nn


def fcnet() -> nn.Module:
    """Three convolutions and two wide linear layers: most of its bytes are in the latter."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(1568, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))


def lenet() -> nn.Module:
    """LeCun et al., Proc. IEEE 86(11), 1998, with ReLU and max-pooling."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


MODELS = {"fcnet": fcnet, "lenet": lenet}
PARAMETERS = {"fcnet": 7_444_202, "lenet": 61_706}


def make(name: str) -> nn.Module:
    model = MODELS[name]()
    assert sum(math.prod(p.shape) for p in model.parameters()) == PARAMETERS[name]
    return model
