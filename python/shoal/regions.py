"""Device-like memory: tensors that the other members put into and get from, without a receive.

    regions = shoal.Regions()                    # all members
    inbox = regions.allocate(size, 1000)         # everybody's first region: number 0
    regions.put(peer, 0, values, offset=1000 * shoal.rank())
    regions.signal(peer, step)                   # complete there once all that was put before is in place
    regions.wait(peer, step)                     # what that member put before its signal is here
"""

import torch

from . import _C, session
from .errors import mistake


class Regions:
    """All members make one together. A member's regions are numbered from 0 in the order in which it registers them; a call that
    reaches for one that is not there yet waits for it. Sequence numbers only grow; nothing has to be reset."""

    def __init__(self):
        session.require_members_for_good("shoal.Regions", "memory of a lost member is gone")
        self._core = _C.Regions(session.current())
        session.add_user(self)

    def register(self, tensor: torch.Tensor) -> int:
        """The others may reach for it from now on; contiguous, on the CPU. Returns its number."""
        return self._core.add(tensor)

    def allocate(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """A new tensor of zeros, registered."""
        # As PyTorch's own functions take a shape: allocate(2, 3), allocate((2, 3)).
        return self._core.allocate(torch.empty(*shape, device="meta").shape, dtype)

    def put(self, rank: int, region: int, tensor: torch.Tensor, offset: int = 0) -> None:
        """Into that member's region, `offset` elements from its start. Returns when `tensor` may change again."""
        self._core.put(rank, region, _start("put", offset), tensor)

    def get(self, rank: int, region: int, into: torch.Tensor, offset: int = 0) -> None:
        """From that member's region. Returns when `into` is full."""
        self._core.get(rank, region, _start("get", offset), into)

    def signal(self, rank: int, sequence: int) -> None:
        """wait(this rank, sequence) ends there once everything that was put there before is in place."""
        self._core.signal(rank, sequence)

    def wait(self, rank: int, sequence: int) -> None:
        """Until that member has signalled `sequence` or a later one."""
        self._core.wait(rank, sequence)

    def settle(self) -> None:
        self._core.settle()  # signals alone are under way between two calls

    def release(self) -> None:
        self._core = None


def _start(what: str, offset: int) -> int:
    if offset < 0:
        raise mistake(what, f"an offset of {offset} is before the region", "offsets count elements from its start")
    return offset
