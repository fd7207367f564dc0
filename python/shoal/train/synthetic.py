"""Batches of the right shape for a model whose data is not at hand: they time a training and teach nothing."""

import torch

_SAMPLES = 2560  # of an epoch


class Synthetic:
    """One batch of random values, the same for every step: making new ones would be timed too."""

    def __init__(self, described: dict, batch: int, seed: int):
        generator = torch.Generator().manual_seed(seed)
        batch = min(batch, _SAMPLES)  # a larger one is refused, and costs no memory before

        def values(given):
            shape = (batch, *given["shape"])
            if given["words"]:
                return torch.randint(1, given["words"], shape, generator=generator)
            return torch.randn(shape, generator=generator)

        *places, classes = described["layers"][-1]["shape"]
        self._batch = *(values(given) for given in described["inputs"]), torch.randint(0, classes, (batch, *places), generator=generator)

    def __len__(self) -> int:
        return _SAMPLES

    def __str__(self) -> str:
        return "synthetic samples"

    def batch(self, chosen: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(value[: len(chosen)] for value in self._batch)
