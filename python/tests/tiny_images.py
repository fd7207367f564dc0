"""A small data set in the format of Fashion-MNIST."""

import gzip
import struct
from pathlib import Path

import torch


def write_idx(file: Path, shape: tuple[int, ...], data: bytes, magic: int = 8) -> None:
    with gzip.open(file, "wb") as out:
        out.write(bytes((0, 0, magic, len(shape))) + struct.pack(f">{len(shape)}I", *shape) + data)


def write(folder: Path) -> Path:
    """640 training and 64 test images: class k is a bright row k."""
    for part, count in (("train", 640), ("t10k", 64)):
        pixels = torch.randint(0, 60, (count, 28, 28), generator=torch.Generator().manual_seed(count), dtype=torch.uint8)
        labels = torch.arange(count) % 10
        for image, label in zip(pixels, labels):
            image[2 * label + 4] = 255
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", (count, 28, 28), pixels.numpy().tobytes())
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", (count,), labels.to(torch.uint8).numpy().tobytes())
    return folder
