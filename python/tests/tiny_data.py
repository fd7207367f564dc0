"""Small data sets in the formats that `shoal train` reads, beside that of Fashion-MNIST (tiny_images.py)."""

import gzip
import io
import tarfile
from pathlib import Path

import torch

from shoal.train import cifar


def cifar_folder(folder: Path, train: int = 4, test: int = 2) -> Path:
    """JPEG files; those of class k are of one colour that tells k."""
    from PIL import Image

    for part, count in (("train", train), ("test", test)):
        for k, name in enumerate(cifar.CLASSES):
            (folder / part / name).mkdir(parents=True)
            for i in range(count):
                Image.new("RGB", (32, 32), (25 * k, 250 - 25 * k, 128)).save(folder / part / name / f"{i:04}.jpg")
    return folder


def tar_of(folder: Path, file: Path) -> Path:
    with tarfile.open(file, "w:xz") as archive:
        archive.add(folder, ".")
    return file


def jpeg(size: tuple[int, int]) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", size).save(out, "JPEG")
    return out.getvalue()


def sentences(folder: Path, train: int = 96, val: int = 16) -> Path:
    """Each German sentence is its English one, word by word: a dictionary of ten words."""
    generator = torch.Generator().manual_seed(7)
    for part, count in (("train", train), ("val", val)):
        words = [torch.randint(0, 10, (int(torch.randint(2, 7, (), generator=generator)),), generator=generator).tolist() for _ in range(count)]
        for language in ("en", "de"):
            lines = "".join(" ".join(f"{language}{w}" for w in line) + ".\n" for line in words)
            with gzip.open(folder / f"{part}.{language}.gz", "wt") as out:
                out.write(lines)
    return folder


def text(file: Path, characters: int = 20_000) -> Path:
    file.write_text(("the quick brown fox jumps over the lazy dog. " * (characters // 45 + 1))[:characters])
    return file
