"""Each member's share of a data set."""

import torch

from . import session


class DistributedSampler(torch.utils.data.DistributedSampler):
    """PyTorch's, with this run's rank and size as defaults."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        own = session.rank() % session.size()  # a server is behind the workers: it makes the same sampler, and draws nothing
        super().__init__(dataset, session.size() if num_replicas is None else num_replicas, own if rank is None else rank,
                         shuffle, seed, drop_last)
