"""Shoal: training across ordinary machines on ordinary networks.

    import shoal
    shoal.init()
    model, optimizer = shoal.data_parallel(model, optimizer)

The same script runs alone, under `shoal run -n 4` and under torchrun.
"""

import torch  # noqa: F401  loads the libraries that shoal._C needs

from . import _backend
from .errors import Error, PeerLost
from .parallel import DataParallel, data_parallel
from .sampler import DistributedSampler
from .session import VERSION as __version__
from .session import flush, init, rank, size

_backend.register()

__all__ = ["DataParallel", "DistributedSampler", "Error", "PeerLost", "__version__", "data_parallel", "flush", "init",
           "rank", "size"]
