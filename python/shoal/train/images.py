"""Labelled images, whole in memory; one byte a value until a batch is made."""

from dataclasses import dataclass

import torch


@dataclass
class Images:
    pixels: torch.Tensor          # uint8, n x channels x height x width
    labels: torch.Tensor          # int64, n
    mean: tuple[float, ...]       # of the training images, by channel, in units of full white
    deviation: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        return "images"

    def batch(self, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pixels = self.pixels[chosen].to(torch.float32)
        scale = torch.tensor([1 / (255 * deviation) for deviation in self.deviation]).view(-1, 1, 1)
        offset = torch.tensor([mean / deviation for mean, deviation in zip(self.mean, self.deviation)]).view(-1, 1, 1)
        return pixels.mul_(scale).sub_(offset), self.labels[chosen]
