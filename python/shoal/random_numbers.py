"""The states of this process's random number generators: PyTorch's, Python's and, where they are in use, NumPy's and the devices'."""

import random
import sys

import torch


def state() -> dict:
    own = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        own["numpy"] = (kind, torch.from_numpy(keys.copy()), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        own["cuda"] = torch.cuda.get_rng_state_all()
    return own


def require_state(own: dict) -> None:
    """Throws where set_state() would."""
    torch.Generator().set_state(own["torch"])
    random.Random().setstate(own["python"])
    if "numpy" in own and "numpy" in sys.modules:
        kind, keys, *rest = own["numpy"]
        sys.modules["numpy"].random.RandomState().set_state((kind, keys.numpy(), *rest))


def set_state(own: dict) -> None:
    torch.set_rng_state(own["torch"])
    random.setstate(own["python"])
    if "numpy" in own and "numpy" in sys.modules:
        kind, keys, *rest = own["numpy"]
        sys.modules["numpy"].random.set_state((kind, keys.numpy(), *rest))
    if "cuda" in own and torch.cuda.is_available() and torch.cuda.device_count() == len(own["cuda"]):
        torch.cuda.set_rng_state_all(own["cuda"])
