"""Each member's share of a data set."""

import torch

from . import session


class DistributedSampler(torch.utils.data.DistributedSampler):
    """PyTorch's, with this run's rank and size as defaults."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        here = session.current()
        super().__init__(dataset, here.size if num_replicas is None else num_replicas, here.rank if rank is None else rank,
                         shuffle, seed, drop_last)
