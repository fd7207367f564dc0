"""torch.distributed.init_process_group("shoal"): registered when shoal is imported."""

import atexit
import os

from torch import distributed

from . import _C
from .errors import Mistake

_owner = None  # the process that has groups: a child that it forks (data loaders) has none to leave


def _leave() -> None:
    if os.getpid() == _owner:
        _C.close_backends()


def _create(place, _options):
    global _owner
    _owner = os.getpid()
    if os.environ.get("SHOAL_ROLE") == "server":  # the others would wait for it in every operation
        raise Mistake("SHOAL_ROLE=server: a process group has no members that only serve (leave it out; servers are for scripts with shoal.data_parallel() or shoal.Table)")
    pretended = os.environ.get("SHOAL_PRETEND_DEVICE", "").split(",")[0]  # for tests: the CPU is that device
    return _C.create_backend(place.store, place.group_rank, place.group_size, place.timeout, place.group_id, place.global_ranks_in_group,
                             int(pretended) if pretended else None)


def register() -> None:
    if not distributed.is_available() or "shoal" in distributed.Backend.backend_list:
        return
    distributed.Backend.register_backend("shoal", _create, extended_api=True, devices=["cpu", "cuda"])
    # A group that the script did not destroy says goodbye too, so that its peers do not see a loss.
    atexit.register(_leave)
