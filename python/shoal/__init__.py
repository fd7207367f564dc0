"""Shoal: training across ordinary machines on ordinary networks.

    import shoal
    shoal.init()
    model, optimizer = shoal.data_parallel(model, optimizer)

The same script runs alone and under `shoal run`, torchrun, mpirun, srun and Kubernetes (docs/launchers).
"""

import torch  # noqa: F401  loads the libraries that shoal._C needs

from . import _backend, learners, models, nn, program, topics
from .adaptive_revision import AdaptiveRevision
from .checkpoint import load, save
from .checkpoints import Checkpoints
from .errors import Error, PeerLost
from .networks import Network, plan, simulate
from .parallel import DataParallel, data_parallel
from .process_group import init_process_group
from .recording import metric
from .regions import Regions
from .sampler import DistributedSampler
from .session import flush, init, members, rank, size
from .signals import checkpoint_due
from .state import State
from .table import Initial, Table, again

__version__ = "0.1.0"

_backend.register()

__all__ = ["AdaptiveRevision", "Checkpoints", "DataParallel", "DistributedSampler", "Error", "Initial", "Network", "PeerLost", "Regions", "State", "Table", "__version__", "again", "checkpoint_due", "data_parallel",
           "flush", "init", "init_process_group", "learners", "load", "members", "metric", "models", "nn", "plan", "program", "rank", "save", "simulate", "size", "topics"]
