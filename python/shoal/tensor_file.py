"""Files in the format of safetensors: a header of JSON that says where each tensor lies, then their bytes. Nothing in them runs.

They are written here, from memory that is used again for the next file and without copying it once more; the package safetensors,
which checks what it reads, reads them.
"""

import contextlib
import json
import mmap
import struct

import torch

from . import durable
from .errors import Error, mistake

_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float8_e4m3fn: "F8_E4M3",
          torch.float8_e5m2: "F8_E5M2", torch.complex64: "C64", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16",
          torch.int8: "I8", torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL"}


class HostCopy:
    """Memory of this machine that holds tensors as they were at one moment; kept, so that the next copy costs no new pages."""

    def __init__(self):
        self._signature = None
        self._copied = None  # on an accelerator: when the copy has arrived

    def take(self, tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            _require_plain(name, tensor)
        signature = [(name, tensor.dtype, tensor.shape) for name, tensor in tensors.items()]
        if signature != self._signature:
            self._lay_out(tensors)
            self._signature = signature
        distant = False
        for view, tensor in zip(self._views, (tensors[name] for name, *_ in self._places)):
            view.copy_(tensor, non_blocking=True)
            distant = distant or tensor.is_cuda
        if distant:
            self._copied = torch.cuda.Event()
            self._copied.record()

    def write(self, path: str, metadata: dict[str, str]) -> None:
        """Brings the copy to the disk. Any thread; the copy stays as it is until this has returned."""
        if self._copied is not None:
            self._copied.synchronize()
        header = {"__metadata__": metadata}
        for name, dtype, shape, begin, end in self._places:
            header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % durable.BLOCK)  # what follows is aligned for the disk, and for every type
        head = mmap.mmap(-1, 8 + len(text))  # whole pages
        head[:] = struct.pack("<Q", len(text)) + text
        durable.write_direct(path, [head, self._memory.numpy()], len(head) + self._size)

    def _lay_out(self, tensors) -> None:
        # Wide types first: then every tensor is aligned, and the format allows no holes.
        order = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
        self._places, end = [], 0
        for name, tensor in order:
            begin, end = end, end + tensor.numel() * tensor.element_size()
            self._places.append((name, tensor.dtype, tensor.shape, begin, end))
        self._size, blocks = end, -(-end // durable.BLOCK) * durable.BLOCK
        room = torch.empty(blocks + durable.BLOCK, dtype=torch.uint8, device="cpu", pin_memory=any(tensor.is_cuda for _, tensor in order))
        first = -room.data_ptr() % durable.BLOCK
        self._memory = room[first:first + blocks]
        self._memory[end:] = 0
        self._views = [self._memory[begin:end].view(dtype).view(shape) for _, dtype, shape, begin, end in self._places]


def read(path: str, content: bytes | None = None) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """(metadata, tensors) of the file, or of `content` that was read from there."""
    from safetensors import safe_open  # here: a run that reads no checkpoint starts sooner
    from safetensors.torch import load as parse

    with _one_line(path):
        if content is not None:
            (length,) = struct.unpack_from("<Q", content)
            tensors = parse(content)  # it checks the header
            return json.loads(content[8:8 + length]).get("__metadata__", {}), tensors
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}


def read_metadata(path: str) -> dict[str, str]:
    from safetensors import safe_open

    with _one_line(path), safe_open(path, framework="pt") as file:
        return file.metadata() or {}


@contextlib.contextmanager
def _one_line(path: str):
    """What is wrong with the file."""
    from safetensors import SafetensorError

    try:
        yield
    except FileNotFoundError:
        raise mistake(path, "no such file") from None
    except OSError as error:
        raise Error(f"{path}: cannot be read: {error.strerror or error}", "invalid_argument", 2) from None
    except (SafetensorError, struct.error) as error:
        raise mistake(path, f"damaged, cut short or no safetensors file ({' '.join(str(error).split())})") from None


def _require_plain(name: str, tensor: torch.Tensor) -> None:
    hint = "a sharded model is saved by torch.distributed.checkpoint"
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise mistake(f"checkpoint: {name}", f"a {type(tensor).__name__} of layout {tensor.layout} cannot be saved", hint)
    if tensor.dtype not in _NAMES:
        raise mistake(f"checkpoint: {name}", f"the format has no {tensor.dtype}", "convert it before it is saved")
