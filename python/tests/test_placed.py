"""Gradients and means in memory that members of one host read where it lies: the same bits as over copies, and bytes that were not copied. What
varies from step to step tells its size first."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from pool import Pool
from shoal import session

MEMBERS, STEPS = 3, 6  # the plan takes over after the three that are measured


class Words(nn.Module):
    """Two layers whose gradients have one shape, and a table whose rows change from step to step."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.table = nn.Embedding(2000, 300, sparse=True)
        self.wide, self.deep, self.last = nn.Linear(300, 400), nn.Linear(400, 400), nn.Linear(400, 3)

    def forward(self, words):
        return self.last(torch.tanh(self.deep(torch.tanh(self.wide(self.table(words))))))


def words(step, rank):
    """More of them in each step, and other ones; on all members as many, lest gradients be weighted on the way."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randint(2000, (40 + 50 * step,), generator=generator)


def lent():
    return sum(link["lent"] for link in session.current().links())


def train(plan, twice=False):
    net = Words()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1), plan=plan)
    figures = []
    for step in range(STEPS):
        optimizer.zero_grad()
        x = words(step, shoal.rank())
        before = lent()
        total = F.cross_entropy(net(x), x % 3)
        if twice:
            total = total + F.cross_entropy(net.module(x), (x + 1) % 3)
        total.backward()
        kept = net.module.deep.weight.grad  # a mean that is still held while the next one is made
        optimizer.step()
        figures.append(lent() - before)
    return tiny.values(net.module), kept.clone(), figures, net.plan


@pytest.fixture(scope="module")
def copied():
    """Members that share no memory: nothing can be lent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_SHARED_MEMORY", "0")
        pool = Pool(MEMBERS)
    yield pool
    pool.close()


LARGE = 4 * (300 * 400 + 400 * 400)  # bytes of the gradients that have one shape and are no others' neighbours


@pytest.mark.parametrize("plan, twice", [("wfbp,*=direct", False), ("wfbp,*=direct", True), ("wfbp,*=ring", False), ("factors,last.*=direct,*.bias=direct", False)])
def test_what_is_read_in_place_has_the_bits_of_what_is_copied(pool, copied, tmp_path, plan, twice):
    theirs = copied.run(train, plan, twice)
    saved = tmp_path / "plan.json"  # measured slices are those of one run
    saved.write_text(theirs[0][3])
    ours = pool(MEMBERS).run(train, str(saved), twice)
    for (values, mean, figures, _), (values_of_copied, mean_of_copied, figures_of_copied, _) in zip(ours, theirs):
        assert tiny.equal(values, values_of_copied)
        assert torch.equal(mean, mean_of_copied)
        assert figures_of_copied == [0] * STEPS
        part = LARGE * (MEMBERS - 1) / MEMBERS  # what a member sends of gradients, and then of means
        if "factors" in plan:
            assert figures[-1] > 0  # its rows, of which there were more in each step
        else:
            assert 0.99 * part < figures[0] < 1.6 * part  # means, and in a ring sums; gradients lie where autograd put them
            assert figures[-1] > 1.99 * part       # both, now that the plan says which gradients have one shape
