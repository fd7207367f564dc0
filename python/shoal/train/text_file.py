"""A text in UTF-8, plain or compressed by gzip."""

import gzip
import zlib
from pathlib import Path

from ..errors import Error, mistake

_LARGEST = 1 << 30  # bytes


def read_text(file: Path, hint: str) -> str:
    try:
        with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise mistake(str(file), f"more than {_LARGEST >> 30} GiB of text", hint)
        return data.decode()
    except FileNotFoundError:
        raise mistake(str(file), "no such file", hint) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise mistake(str(file), f"damaged or cut short ({error})", hint) from None
    except UnicodeDecodeError as error:
        raise mistake(str(file), f"not text in UTF-8 (byte {error.start})", hint) from None
    except OSError as error:
        raise Error(f"{file}: cannot be read: {error.strerror or error} ({hint})", "invalid_argument", 2) from None
