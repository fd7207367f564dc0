"""In which order `shoal train` takes the images: a function of seed, epoch and place, so that it can go on where it stopped."""

import torch


class Order:
    """This member's part of each step's batch. Rank order inside a batch, so that members and micro-batches agree."""

    def __init__(self, images: int, batch: int, epochs: int, seed: int, here):
        self._images, self._batch, self._epochs = images, batch, epochs
        self._whole = batch * here.size
        self._rank = here.rank
        self._shuffle = torch.Generator().manual_seed(seed)
        self._epoch, self._taken = 0, 0  # of all members together
        self._order = torch.randperm(images, generator=self._shuffle)

    def __len__(self) -> int:
        """Steps that are left."""
        return (self._images - self._taken) // self._whole + (self._epochs - self._epoch - 1) * (self._images // self._whole)

    def next(self) -> torch.Tensor:
        if self._taken + self._whole > self._images:
            self._enter(self._epoch + 1)
        start = self._taken + self._rank * self._batch
        self._taken += self._whole
        return self._order[start:start + self._batch]

    def place(self) -> dict:
        return {"epoch": self._epoch, "taken": self._taken}

    def go_to(self, place: dict) -> None:
        """Before the first next(). Any number of members may have been there."""
        self._enter(place["epoch"])
        self._taken = place["taken"]

    def _enter(self, epoch: int) -> None:
        for self._epoch in range(self._epoch + 1, epoch + 1):
            self._order = torch.randperm(self._images, generator=self._shuffle)
        self._taken = 0
