"""Fashion-MNIST as IDX files (Debian: dataset-fashion-mnist)."""

import gzip
import struct
import zlib
from pathlib import Path

import numpy
import torch

from ..errors import Error, mistake
from .images import Images

_MEAN, _DEVIATION = 0.2860, 0.3530
_LARGEST = 1 << 30  # bytes; what a header announces is not believed beyond it


def read(folder: str) -> tuple[Images, Images]:
    """(training, test)"""
    return _read_part(Path(folder), "train"), _read_part(Path(folder), "t10k")


def _read_part(folder: Path, part: str) -> Images:
    pixels_file = folder / f"{part}-images-idx3-ubyte.gz"
    labels_file = folder / f"{part}-labels-idx1-ubyte.gz"
    pixels, labels = _read_idx(pixels_file, 3), _read_idx(labels_file, 1)
    if pixels.shape[1:] != (28, 28):
        raise mistake(str(pixels_file), f"images of {pixels.shape[1]}x{pixels.shape[2]} pixels, expected 28x28")
    if len(pixels) != len(labels):
        raise mistake(str(labels_file), f"{len(labels)} labels for {len(pixels)} images")
    if len(labels) == 0:
        raise mistake(str(labels_file), "it holds no label")
    if labels.max() > 9:
        raise mistake(str(labels_file), f"label {labels.max()}, expected 0 to 9")
    return Images(torch.from_numpy(pixels).unsqueeze(1), torch.from_numpy(labels.astype(numpy.int64)), (_MEAN,), (_DEVIATION,))


def _read_idx(file: Path, dimensions: int) -> numpy.ndarray:
    hint = "the Debian package dataset-fashion-mnist has it; say where with --data"
    header = 4 + 4 * dimensions
    try:
        with gzip.open(file) as stream:
            start = stream.read(header)
            if len(start) < header or start[:4] != bytes((0, 0, 8, dimensions)):
                raise mistake(str(file), f"not an IDX file of bytes in {dimensions} dimension{'s' * (dimensions > 1)}", hint)
            shape = struct.unpack(f">{dimensions}I", start[4:])
            expected = int(numpy.prod(shape, dtype=object))
            if expected > _LARGEST:
                raise mistake(str(file), f"its header announces {expected} bytes")
            data = stream.read(expected + 1)
    except FileNotFoundError:
        raise mistake(str(file), "no such file", hint) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise mistake(str(file), f"damaged or cut short ({error})", hint) from None
    except OSError as error:
        raise Error(f"{file}: cannot be read: {error.strerror or error} ({hint})", "invalid_argument", 2) from None
    if len(data) != expected:
        found = "more" if len(data) > expected else f"only {len(data)}"
        raise mistake(str(file), f"its header announces {expected} bytes, it holds {found}", hint)
    return numpy.frombuffer(bytearray(data), numpy.uint8).reshape(shape)
