"""A table's rows as one file that other programs read: keys (64 bits, without a sign) and values, row by row.

    .safetensors, .npz   the arrays "keys" (rows) and "values" (rows, dim)
    .csv                 a line a row: its key, then its values; the first line names the columns
"""

import io
import json
import os
import shutil
import tempfile
import zipfile

import numpy as np

from . import _C, durable, tensor_file
from .errors import mistake

_ROWS = 65536  # assigned at a time
_FORMATS = (".safetensors", ".npz", ".csv")


def export(table, path: str) -> int:
    write = {".safetensors": _safetensors, ".npz": _npz, ".csv": _csv}[_format(path)]
    folder = os.path.dirname(os.path.abspath(path))
    durable.make_folder(folder)
    with durable.told(path, "cannot be written"):
        aside = tempfile.mkdtemp(prefix=f".{os.path.basename(path)}.", dir=folder)  # servers write here
    try:
        clock = table.snapshot(aside)
        cut = _C.read_cut(aside)
        keys, values = zip(*(cut.read_part(aside, part) for part in range(cut.parts)))
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    keys, values = np.concatenate(keys), np.concatenate(values)
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    durable.write(path, write(keys, values, {"table": table.name, "clock": clock}))
    return len(keys)


def import_(table, path: str) -> int:
    read = {".safetensors": _read_safetensors, ".npz": _read_npz, ".csv": _read_csv}[_format(path)]
    if not os.path.exists(path):
        raise mistake(path, "no such file")
    try:
        keys, values = read(path, table)
    except (ValueError, KeyError, OSError, EOFError, OverflowError, zipfile.BadZipFile) as error:
        raise mistake(path, f"holds no rows of a table ({' '.join(str(error).split())})") from None
    if keys.ndim != 1 or values.shape != (len(keys), table.dim):
        raise mistake(path, f"keys of shape {keys.shape} and values of shape {values.shape}", f"table {table.name} has rows of {table.dim}")
    if keys.dtype.kind not in "iu" or values.dtype != table.dtype:
        raise mistake(path, f"keys of {keys.dtype} and values of {values.dtype}", f"table {table.name} holds {table.dtype}")
    for begin in range(0, len(keys), _ROWS):
        table.assign(keys[begin : begin + _ROWS], values[begin : begin + _ROWS])
    return len(keys)


def _format(path: str) -> str:
    ending = os.path.splitext(path)[1]
    if ending not in _FORMATS:
        raise mistake(path, f"no format of tables ends in {ending!r}", f"one of {', '.join(_FORMATS)}")
    return ending


def _safetensors(keys, values, origin: dict):
    from safetensors.numpy import save

    return [save({"keys": keys, "values": values}, metadata={"shoal": json.dumps(origin)})]


def _read_safetensors(path: str, table):
    _, tensors = tensor_file.read(path)
    return tensors["keys"].numpy(), tensors["values"].numpy()


def _npz(keys, values, origin: dict):
    buffer = io.BytesIO()
    np.savez(buffer, keys=keys, values=values)
    return [buffer.getbuffer()]


def _read_npz(path: str, table):
    with np.load(path, allow_pickle=False) as file:
        return file["keys"], file["values"]


def _csv(keys, values, origin: dict):
    yield (",".join(["key", *(f"value{i}" for i in range(values.shape[1]))]) + "\n").encode()
    for begin in range(0, len(keys), _ROWS):
        rows = zip(keys[begin : begin + _ROWS].tolist(), values[begin : begin + _ROWS])
        yield "".join(f"{key},{','.join(map(str, row))}\n" for key, row in rows).encode()  # the shortest digits that are this value


def _read_csv(path: str, table):
    with open(path) as file:
        lines = [line.rstrip("\n").split(",") for line in file][1:]
    for number, line in enumerate(lines, 2):
        if len(line) != 1 + table.dim:
            raise ValueError(f"line {number} has {len(line)} columns, not {1 + table.dim}")
    keys = np.array([int(line[0]) for line in lines], np.uint64)
    number_of = int if table.dtype.kind == "i" else float
    return keys, np.array([[number_of(value) for value in line[1:]] for line in lines], table.dtype).reshape(len(lines), table.dim)
