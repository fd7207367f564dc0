"""What members have alike as bytes for others that come: a header of JSON, then the tensors as they lie in memory. What a checkpoint may hold goes into it
(training_state.flatten), and nothing in it runs. Each tensor is copied once on either side, while all members wait: torch.save, and its buffer
as bytes, take more than twice as long for a large state.
"""

import json
import struct
import warnings

import torch

from .training_state import flatten, unflatten

_ALIGNED = 16  # for every type


def parts(values) -> list:
    """What pack() puts together: the tensors' where they lie."""
    tensors: dict[str, torch.Tensor] = {}
    tree = flatten("", values, tensors)
    places, raws, at = [], [], 0
    for name, tensor in tensors.items():
        raw = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        places.append([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), at, len(raw)])
        raws += [raw, bytes(-len(raw) % _ALIGNED)]
        at += len(raw) + len(raws[-1])
    text = json.dumps([tree, places]).encode()
    head = struct.pack("<Q", len(text)) + text
    return [head, bytes(-len(head) % _ALIGNED), *raws]


def pack(values) -> bytes:
    return b"".join(parts(values))


def unpack(packed):
    """The opposite, of anything that has bytes; the tensors are copies."""
    (length,) = struct.unpack_from("<Q", packed)
    tree, places = json.loads(bytes(memoryview(packed)[8:8 + length]))
    begin = 8 + length + -(8 + length) % _ALIGNED
    tensors = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that `packed` cannot be written: nobody does
        for name, dtype, shape, at, size in places:
            kind = getattr(torch, dtype)
            raw = torch.frombuffer(packed, dtype=torch.uint8, count=size, offset=begin + at) if size else torch.empty(0, dtype=torch.uint8, device="cpu")
            tensors[name] = raw.view(kind).view(shape).clone()
    return unflatten(tree, tensors)
