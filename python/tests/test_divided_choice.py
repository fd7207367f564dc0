"""Layers that members divide because the planner says so; and what becomes of a divided layer when members take different ways through the model."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import labs
import shoal
import tiny
from pool import launch
from test_divided import STEPS, Net, adam, loss, require_near, sgd, wrapped

# --- members that take different ways


class Ways(Net):
    """Passes the large layers by that are `skipped`; calls those that are `unused`, for nothing."""

    skipped = unused = ()
    fails = False

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        hidden = self._through("wide", hidden, F.pad(hidden, (0, 45)))
        hidden = self._through("deep", hidden, hidden[:, :257])
        if self.fails:
            raise RuntimeError("a batch that is too large")
        return self.last(hidden)

    def _through(self, name, hidden, past):
        if name in self.skipped:
            return past
        output = torch.tanh(getattr(self, name)(hidden))
        return past if name in self.unused else output


def take_way(net, form, step, rank):
    net.skipped = net.unused = ()
    if rank == 1 and step % 3 != 2:
        verb, *names = form.split()
        net.skipped = names if verb == "skips" else ()
        net.unused = names if verb == "ignores" else ()


def train(folder, groups, form):
    net, optimizer = wrapped(Ways(), folder, groups)
    rank = shoal.rank()
    for step in range(STEPS):
        optimizer.zero_grad()
        take_way(net.module, form, step, rank)
        if form == "looks" and rank == 0:
            net(torch.ones(3, 6))  # of which there is no backward pass
        if form == "fails" and rank == 1:
            net.module.fails = True
            with pytest.raises(RuntimeError):
                net(torch.ones(2, 6))
            net.module.fails = False
        total = loss(net, step, rank, 8)
        if form == "evaluates" and rank == 1:
            net(torch.ones(4, 6))
        net.samples(8)  # the others' forward passes count, too
        total.backward()
        optimizer.step()
    assert len(net._core.divided) == 2
    return tiny.values(net.module), [p.grad for p in net.parameters()]


FORMS = ["skips wide", "skips deep", "skips wide deep", "ignores wide", "ignores deep", "looks", "evaluates", "fails"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("members, groups", [(2, 1), (4, 2)])
def test_members_that_take_different_ways_end_like_one_process(pool, tmp_path, form, members, groups):
    results = pool(members).run(train, tmp_path, groups, form)
    net = Ways()
    optimizer = sgd(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(members):
            take_way(net, form, step, rank)
            (loss(net, step, rank, 8) / members).backward()
        optimizer.step()
    for values, means in results:
        assert tiny.equal(values, results[0][0])
        require_near(values, tiny.values(net))
        require_near(means, [p.grad for p in net.parameters()])


# --- which layers may be


def not_divided(which):
    """One member gives a reason; none divides the layer."""
    net = Net()
    if which == "held" and shoal.rank() == 1:
        held = net.wide.weight.detach()
    net, optimizer = shoal.data_parallel(net, sgd(net), plan="hybrid:1")
    for step in range(STEPS):
        optimizer.zero_grad()
        loss(net, step, shoal.rank(), 8).backward()
        optimizer.step()
        if which == "looked at" and shoal.rank() == 1:
            net.module.wide.weight.norm()
    names = [name for name, _ in net.module.named_parameters()]
    return [names[number] for number in net._core.divided], tiny.values(net)


@pytest.mark.parametrize("which, expected", [("held", ["deep.weight"]), ("looked at", [])])
def test_what_one_member_forbids_no_member_divides(pool, which, expected):
    results = pool(2).run(not_divided, which)
    assert [divided for divided, _ in results] == [expected] * 2
    assert tiny.equal(results[0][1], results[1][1])


# --- the planner's choice

MEMBERS = 4


class Words(torch.nn.Module):
    """A layer with few inputs and many outputs, as over a vocabulary: of the rows that its members exchange the inputs are the shorter half."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.first, self.last = torch.nn.Linear(6, 32), torch.nn.Linear(32, 8192)

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


CHOOSING = """
import json, sys, torch, shoal, test_divided, test_divided_choice, tiny
torch.set_num_threads(1)
net = test_divided_choice.Words()
net, optimizer = shoal.data_parallel(net, test_divided.adam(net))
losses = []
for step in range(6):
    optimizer.zero_grad()
    loss = test_divided.loss(net, step, shoal.rank(), 8)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
ways = [unit["way"] for unit in json.loads(net.plan)["units"]]
torch.save([ways, losses, tiny.values(net)], f"{sys.argv[1]}/{shoal.rank()}")
"""


@pytest.fixture
def lab():
    with labs.up("divided", "-n", str(MEMBERS), "--rate", "10mbit") as name:
        yield name


def test_auto_divides_a_layer_where_links_are_slow_and_ends_like_one_process(lab, tmp_path):
    """By bytes of a member, that take far longer than computing does: the gradient 1.6 MB, factors 0.8 MB, divided among all 0.4 MB."""
    command = [sys.executable, "-c", CHOOSING, str(tmp_path)]
    run = launch(MEMBERS, command, flags=["--lab", lab], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=150)
    assert run.returncode == 0, err
    net = Words()
    optimizer = adam(net)
    losses = [[] for _ in range(MEMBERS)]
    for step in range(6):
        optimizer.zero_grad()
        for rank in range(MEMBERS):
            own = loss(net, step, rank, 8)
            losses[rank].append(own.item())
            (own / MEMBERS).backward()
        optimizer.step()
    for rank in range(MEMBERS):
        ways, seen, values = torch.load(tmp_path / str(rank))
        assert "hybrid:1" in ways, ways
        assert seen == pytest.approx(losses[rank], rel=1e-5)
        require_near(values, tiny.values(net))
