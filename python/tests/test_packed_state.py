"""What is packed for others that come is unpacked to the same, whatever a checkpoint may hold; and what was unpacked is nobody else's memory."""

import math

import pytest
import torch

from shoal.errors import Error
from shoal.packed_state import pack, unpack


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.uint8, torch.bool]


def test_everything_comes_back():
    tensors = {str(dtype): torch.arange(7).to(dtype) for dtype in TYPES}
    values = [3, {"none": None, "text": "ä", "number": 0.1, "inf": math.inf, "pairs": {0: (1, 2.5), 7: [True]}, "model": tensors},
              {"empty": torch.empty(0, 3), "alone": torch.tensor(2.5), "turned": torch.arange(6).reshape(2, 3).T, "again": tensors["torch.bool"]}]
    packed = pack(values)
    assert same(unpack(packed), values)
    assert same(unpack(memoryview(packed)), values)


def test_what_was_unpacked_can_be_written():
    packed = pack([torch.zeros(5)])
    unpack(packed)[0].add_(1)
    assert torch.equal(unpack(packed)[0], torch.zeros(5))


def test_what_no_checkpoint_holds_is_refused():
    with pytest.raises(Error, match="a set cannot be saved"):
        pack({"seen": {1, 2}})
