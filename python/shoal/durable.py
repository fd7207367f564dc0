"""Files that are whole or not there: written aside, brought to the disk, then renamed, the folder's entry last.

Whatever moment the power or the process goes, a reader finds under the name what was there before or all of what was written.
"""

import contextlib
import os

from .errors import Error

_AT_ONCE = 8 << 20  # bytes of one write: other threads get the interpreter in between
_ASIDE = ".aside"


def write(path: str, pieces) -> None:
    aside = path + _ASIDE
    try:
        file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            for piece in pieces:
                rest = memoryview(piece).cast("B")
                while rest:
                    rest = rest[os.write(file, rest[:_AT_ONCE]):]
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(aside, path)
        _sync_folder(os.path.dirname(path))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # a full disk needs the room
        raise failure(path, "cannot be written", error) from None


def make_folder(path: str) -> None:
    missing, above = [], path
    while not os.path.isdir(above or "."):
        missing.append(above)
        above = os.path.dirname(above)
    try:
        for folder in reversed(missing):
            _make_level(folder)
    except FileExistsError as error:
        raise Error(f"{path}: cannot be made: {error.filename} is no folder", "io", 1) from None
    except OSError as error:
        raise failure(path, "cannot be made", error) from None


def remove(path: str) -> None:
    """A file; that it is gone already is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failure(path, "cannot be removed", error) from None


def remove_folder(path: str, first: str) -> None:
    """A folder of files, of which `first` goes first: without it the others mean nothing."""
    remove(os.path.join(path, first))
    try:
        _sync_folder(path)
        for name in os.listdir(path):
            remove(os.path.join(path, name))
        os.rmdir(path)
    except OSError as error:
        raise failure(path, "cannot be removed", error) from None


@contextlib.contextmanager
def told(path: str, what: str):
    try:
        yield
    except OSError as error:
        raise failure(path, what, error) from None


def failure(path: str, what: str, error: OSError) -> Error:
    return Error(f"{path}: {what}: {error.strerror or error}", "io", 1)


def _make_level(path: str) -> None:
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):  # else another member was faster
            raise
    _sync_folder(os.path.dirname(path))


def _sync_folder(path: str) -> None:
    folder = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
