"""Gradients and means in memory that members of one host read where it lies: the same bits as over copies, and bytes that were not copied. What
varies from step to step tells its size first."""

import json
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from pool import Pool, launch, notes_of_run
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


class Mixed(nn.Module):
    """Gradients that one operator makes always alike, of several kinds; one that another operator makes in each second step; a table whose rows vary."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.table = nn.Embedding(500, 64, sparse=True)
        self.memory = nn.LSTM(64, 64, batch_first=True)
        self.image = nn.Conv1d(64, 96, 3, padding=1)
        self.turning = nn.Linear(96, 96)
        self.last = nn.Linear(96, 128)

    def forward(self, words, step):
        x = self.memory(self.table(words))[0]
        x = torch.relu(self.image(x.transpose(1, 2))).transpose(1, 2)
        x = self.turning(x) if step % 2 else (x.unsqueeze(-2) * self.turning.weight).sum(-1) + self.turning.bias
        return self.last(x.mean(1))


FIXED = ("memory.weight_ih_l0", "memory.weight_hh_l0", "image.weight", "last.weight")  # in the order of the model
MIXED_STEPS = 10


def train_mixed(plan="wfbp,*=direct"):
    net = Mixed()
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1), plan=plan)
    for step in range(MIXED_STEPS):
        optimizer.zero_grad()
        generator = torch.Generator().manual_seed(100 * step + shoal.rank())
        x = torch.randint(500, (4, 3 + step), generator=generator)
        F.cross_entropy(net(x, step), x[:, 0] % 3).backward()
        optimizer.step()
    return tiny.values(net.module), net.plan


def by_hand(plan):
    """The plan with units that no measurement has a say in: each tensor its own, but for the small ones, which are packed."""
    plan = json.loads(plan)
    small = [i for i, tensor in enumerate(plan["tensors"]) if tensor["name"] not in (*FIXED, "turning.weight", "table.weight")]
    units = [[i] for i in range(len(plan["tensors"])) if i not in small] + [small]
    plan["units"] = [{"tensors": unit, "way": "rows" if plan["tensors"][unit[0]]["name"] == "table.weight" else "direct", "slice_bytes": 1 << 20,
                      "priority": place, "predicted_seconds": 0, "predicted_exposed": 0} for place, unit in enumerate(units)]
    return json.dumps(plan)


# Goal: what has one site in the traced graph is placed, all else is told apart and travels with the same bits. Method: a model with one of each kind and a
# plan by hand, beside members that share no memory; the report tells the bytes that lay in their places, as counted.
def test_a_traced_graph_says_which_gradients_have_a_place(pool, copied, tmp_path):
    saved = tmp_path / "plan.json"
    saved.write_text(by_hand(copied.run(train_mixed)[0][1]))
    theirs = copied.run(train_mixed, str(saved))
    with launch(MEMBERS, [sys.executable, "-c", "import shoal, test_placed as t, torch; torch.set_num_threads(1); shoal.init(); "
                          f"torch.save(t.train_mixed({str(saved)!r})[0], f'values-{{shoal.rank()}}')"], cwd=tmp_path) as members:
        assert members.wait() == 0
    for rank, (values, _) in enumerate(theirs):
        assert tiny.equal(torch.load(tmp_path / f"values-{rank}"), values)
    (note,) = [note for note in notes_of_run(tmp_path) if "read in place" in note]
    nbytes = {name: parameter.nbytes for name, parameter in Mixed().named_parameters()}
    placed = sum(nbytes[name] for name in FIXED)
    assert f"{len(FIXED)} gradients are written to it by the operators that make them ({', '.join(FIXED)})" in note
    assert f"in this iteration {placed} bytes, and {nbytes['turning.weight']} of others were not" in note
    assert "1 are copied once: other operators make them from pass to pass (turning.weight)" in note
    assert "1 vary, and tell their size first (table.weight)" in note
    memory = {plan["name"]: plan["memory"] for plan in json.loads(theirs[0][1])["units"]}
    assert all(memory[name] == "in place" for name in FIXED) and memory["table.weight"] == "size first"


def train_pictures(plan):
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.05), plan=plan)
    for step in range(9):
        optimizer.zero_grad()
        x = torch.randn(2 + step, 3, 8, 8, generator=torch.Generator().manual_seed(100 * step + shoal.rank()))
        F.cross_entropy(net(x), torch.arange(2 + step)).backward()
        optimizer.step()
    return tiny.values(net.module)


# Goal: a place serves as raw memory, too. Method: as batches grow oneDNN takes other kernels, whose scratch, raw and of a weight's size, then comes first.
def test_an_operator_may_take_a_place_as_raw_memory(pool, copied):
    plan = "wfbp,*=direct"
    for values, values_of_copied in zip(pool(MEMBERS).run(train_pictures, plan), copied.run(train_pictures, plan)):
        assert tiny.equal(values, values_of_copied)
