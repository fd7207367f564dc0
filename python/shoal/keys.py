"""Keys of rows: integers of 64 bits, or strings by a hash that is the same everywhere."""

import hashlib
from collections.abc import Iterable

import numpy as np

from .errors import Error


def keys_of(keys) -> np.ndarray:
    """64-bit keys. Integers are keys; a string's key is the first 8 bytes of its BLAKE2 hash, the same everywhere."""
    if isinstance(keys, (int, str, np.integer)):
        keys = [keys]
    if isinstance(keys, (bytes, bytearray)):
        raise Error("keys are integers or strings, not bytes", "invalid_argument", 2)
    if not isinstance(keys, np.ndarray):
        keys = list(keys) if isinstance(keys, Iterable) else [keys]
        if any(isinstance(key, str) for key in keys) and not all(isinstance(key, str) for key in keys):
            raise Error("keys are integers or strings, not both", "invalid_argument", 2)
        given, keys = keys, np.asarray(keys)
        if keys.dtype.kind == "f" and _whole(exact := np.asarray(given, object)):  # what NumPy makes of large ones beside small ones
            keys = exact
    if keys.dtype.kind == "O" and all(isinstance(key, str) for key in keys.ravel()):
        keys = keys.astype(str)
    if keys.dtype.kind == "U":
        return np.fromiter((_hash(str(key)) for key in keys.ravel()), np.uint64, keys.size).reshape(keys.shape)
    if keys.size == 0:
        return keys.astype(np.uint64)
    if keys.dtype.kind == "O" and _whole(keys):
        for key in keys.ravel():
            if not 0 <= key < 2**64:
                raise _no_key(key)
        return keys.astype(np.uint64)
    if keys.dtype.kind not in "iu":
        raise Error(f"keys are integers or strings, not {keys.dtype}", "invalid_argument", 2)
    if keys.dtype.kind == "i" and keys.min() < 0:
        raise _no_key(keys.min())
    return keys.astype(np.uint64)


def _whole(keys: np.ndarray) -> bool:
    return all(isinstance(key, (int, np.integer)) for key in keys.ravel())


def _no_key(number) -> Error:
    return Error(f"{number} is no key: these are from 0 to 2**64 - 1", "invalid_argument", 2)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
