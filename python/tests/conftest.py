import pytest
import torch

from pool import Pool


@pytest.fixture(scope="session")
def pool():
    """pool(n): n members that live through the whole session; replaced after a failure."""
    torch.set_num_threads(1)  # as in the members: the oracles must add in the same order
    pools = {}

    def get(size: int) -> Pool:
        if size not in pools or not pools[size].alive:
            pools[size] = Pool(size)
        return pools[size]

    yield get
    for each in pools.values():
        each.close()
