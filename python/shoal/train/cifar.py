"""CIFAR-10 as JPEG files, train/CLASS/*.jpg and test/CLASS/*.jpg: a folder, or a tar file of it, compressed or not."""

import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy
import torch

from ..errors import Error, mistake
from .images import Images

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_MEAN, _DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
_LARGEST = 1 << 16  # bytes of one file; one of 32x32 pixels has about 1,000
_HINT = "--data is a folder or tar file with train/CLASS/*.jpg and test/CLASS/*.jpg"


def read(where: str) -> tuple[Images, Images]:
    """(training, test), each ordered by class and name. Needs Pillow."""
    path = Path(where)
    found = {"train": [], "test": []}
    try:
        for name, size, data in _in_folder(path) if path.is_dir() else _in_tar(path):
            if size > _LARGEST:
                raise mistake(f"{where}: {name}", f"{size} bytes, more than an image of 32x32 pixels can have", _HINT)
            part, label = name.parts[-3], CLASSES.index(name.parts[-2])
            found[part].append((label, name.name, _pixels(f"{where}: {name}", data())))
    except FileNotFoundError:
        raise mistake(where, "no such file", _HINT) from None
    except (tarfile.TarError, lzma.LZMAError, EOFError, zlib.error):
        raise mistake(where, "no tar file, damaged or cut short", _HINT) from None
    except OSError as error:
        raise Error(f"{where}: cannot be read: {error.strerror or error} ({_HINT})", "invalid_argument", 2) from None
    return _images(where, "train", found["train"]), _images(where, "test", found["test"])


def _in_folder(folder: Path) -> Iterator:
    """(name, size, function that gives the bytes) of each image."""
    for file in folder.glob("*/*/*.jpg"):
        if _belongs(file):
            yield file.relative_to(folder), file.stat().st_size, file.read_bytes


def _in_tar(file: Path) -> Iterator:
    with tarfile.open(file) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if member.isfile() and name.suffix == ".jpg" and _belongs(name):
                yield name, member.size, archive.extractfile(member).read


def _belongs(name) -> bool:
    return len(name.parts) >= 3 and name.parts[-3] in ("train", "test") and name.parts[-2] in CLASSES


def _pixels(name: str, data: bytes) -> numpy.ndarray:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise mistake("--data", "JPEG files need Pillow, which this Python lacks", "pip install pillow") from None
    try:
        image = Image.open(io.BytesIO(data), formats=["JPEG"])
        if image.size != (32, 32):
            raise mistake(name, f"an image of {image.width}x{image.height} pixels, expected 32x32", _HINT)
        return numpy.asarray(image.convert("RGB")).transpose(2, 0, 1)
    except UnidentifiedImageError:
        raise mistake(name, "not a JPEG image", _HINT) from None
    except (OSError, SyntaxError) as error:  # what Pillow says of broken data
        raise mistake(name, f"damaged or cut short ({error})", _HINT) from None


def _images(where: str, part: str, found: list) -> Images:
    missing = set(range(len(CLASSES))) - {label for label, _, _ in found}
    if missing:
        raise mistake(where, f"no image in {part}/{CLASSES[min(missing)]}", _HINT)
    found.sort(key=lambda image: image[:2])
    return Images(torch.from_numpy(numpy.stack([pixels for _, _, pixels in found])), torch.tensor([label for label, _, _ in found]),
                  _MEAN, _DEVIATION)
