"""Files that are whole or not there: written aside, brought to the disk, then renamed, the folder's entry last.

Whatever moment the power or the process goes, a reader finds under the name what was there before or all of what was written.
"""

import contextlib
import errno
import os

from .errors import Error

BLOCK = 4096  # bytes: what is written past the page cache lies and ends at multiples of it, in memory and in the file
_ASIDE = ".aside"
# Of file systems, devices and memory that have no O_DIRECT: they say so when the file is opened, or at the first write.
_NO_DIRECT = {errno.EINVAL, errno.EFAULT, errno.EOPNOTSUPP}


def write(path: str, pieces) -> None:
    """The file holds the bytes of `pieces`."""
    _write(path, lambda aside: _fill(aside, pieces))


def write_direct(path: str, pieces, size: int) -> None:
    """The same of the first `size` bytes of `pieces`, which are whole blocks at addresses of blocks: the disk takes them from there. It
    spares a training that goes on meanwhile the copy into the page cache, and what lay there stays."""
    def fill(aside):
        try:
            _fill(aside, pieces, size, os.O_DIRECT)
        except OSError as error:
            if error.errno not in _NO_DIRECT:
                raise
            _fill(aside, pieces, size)

    _write(path, fill)


def _write(path: str, fill) -> None:
    file = os.path.realpath(path)  # a link stays one
    if os.path.exists(file) and not os.path.isfile(file):
        raise Error(f"{path}: cannot be written: is no file", "invalid_argument", 2)  # /dev/null would become one
    aside = file + _ASIDE
    try:
        fill(aside)
        os.rename(aside, file)
        _sync_folder(os.path.dirname(file))
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


def _fill(aside: str, pieces, size: int | None = None, way: int = 0) -> None:
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | way, 0o666)
    try:
        for piece in pieces:
            rest = memoryview(piece).cast("B")
            while rest:
                rest = rest[os.write(file, rest):]  # other threads have the interpreter meanwhile
        if size is not None:
            os.ftruncate(file, size)
        os.fsync(file)
    finally:
        os.close(file)


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
