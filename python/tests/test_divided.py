"""Layers that members divide among each other: training ends like one process that has all weights and all samples; whoever looks at a weight, a
gradient or the optimizer's state sees all of it, without the others' help."""

import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from pool import launch

STEPS = 7  # the plan takes over after the three that are measured
OUTPUTS = {"wide.weight": 301, "deep.weight": 257}  # of which no group has an equal part each


class Net(nn.Module):
    """Two large layers in a row."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.first, self.wide, self.deep, self.last = nn.Linear(6, 256), nn.Linear(256, 301), nn.Linear(301, 257), nn.Linear(257, 3)

    def forward(self, x):
        return self.last(torch.tanh(self.deep(torch.tanh(self.wide(torch.tanh(self.first(x)))))))


class Unbiased(Net):
    def __init__(self):
        super().__init__()
        self.wide.bias = None


class Sequence(Net):
    """The large layers see several rows of each sample, and the first of them twice."""

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        both = self.wide(hidden.unsqueeze(1).repeat(1, 2, 1)).sum(1) + self.wide(hidden)
        return self.last(torch.tanh(self.deep(torch.tanh(both))))


class Elsewhere(Net):
    """Something besides its layer uses a weight."""

    def forward(self, x):
        hidden = torch.tanh(self.first(x))
        wide = torch.tanh(self.wide(hidden) + F.linear(hidden, self.wide.weight))
        return self.last(torch.tanh(self.deep(wide))) + 0.01 * self.deep.weight.square().sum()


NETS = {net.__name__: net for net in (Net, Unbiased, Sequence, Elsewhere)}


def plan_with_strips(net, ranks, groups):
    tensors = [{"name": name, "type": "f32", "count": p.numel(), "first_use": i, "backward_at": -1.0}
               for i, (name, p) in enumerate(net.named_parameters())]
    large = [i for i, t in enumerate(tensors) if t["name"] in OUTPUTS]
    for i in large:
        tensors[i] |= {"rows": 8, "outputs": OUTPUTS[tensors[i]["name"]], "divisible": 1}

    def unit(of, way):
        return {"tensors": of, "way": way, "slice_bytes": 16384, "priority": 0, "predicted_seconds": 0.0, "predicted_exposed": 0.0}

    link = {"alpha": 1e-4, "rate": 1e8, "add_rate": 1e9, "fan_in": 0.0, "fan_in_alpha": 0.0}
    units = [unit([i], f"hybrid:{groups}") for i in large] + [unit([i for i in range(len(tensors)) if i not in large], "direct")]
    return json.dumps({"version": 1, "ranks": ranks, "order": "fifo", "link": link, "forward_seconds": 0.0, "backward_seconds": 0.0,
                       "tensors": tensors, "units": units})


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=0.01, eps=1e-3)  # so that rounding is not divided by nearly nothing


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


OPTIMIZERS = {"sgd": sgd, "adam": adam}


def wrapped(net, folder, groups, optimizer=sgd):
    plan = folder / f"plan-{shoal.rank()}.json"
    plan.write_text(plan_with_strips(net, shoal.size(), groups))
    return shoal.data_parallel(net, optimizer(net), plan=str(plan))


def samples(form, rank):
    return {"uneven": 2 + 3 * rank, "one without": 0 if rank == 1 else 5}.get(form, 8)


def loss(net, step, rank, n):
    x, y = tiny.data(step, rank, n)
    return F.cross_entropy(net(x), y, reduction="sum") / max(n, 1)


def clip(net, form):
    if form == "clipped":
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)


def drops(form):
    return form != "kept"  # gradients add up over the steps


def train(name, folder, groups, form, optimizer):
    net, optimizer = wrapped(NETS[name](), folder, groups, OPTIMIZERS[optimizer])
    rank, divided = shoal.rank(), []
    if form == "evaluating":
        net.eval()
    for step in range(STEPS):
        if drops(form):
            optimizer.zero_grad()
        if form == "accumulated":
            with net.no_sync():
                loss(net, 100 + step, rank, 8).backward()
        if form == "twice":
            loss(net, 100 + step, rank, 8).backward()
        loss(net, step, rank, samples(form, rank)).backward()
        clip(net, form)
        divided.append(len(net._core.divided))
        optimizer.step()
    assert divided[-1] == 2, divided
    return tiny.values(net.module), optimizer.state_dict()["state"], [p.grad for p in net.parameters()]


def oracle(name, members, form, optimizer):
    """One process that runs every member's samples and takes the mean."""
    net = NETS[name]()
    optimizer = OPTIMIZERS[optimizer](net)
    counts = [samples(form, rank) for rank in range(members)]
    for step in range(STEPS):
        if drops(form):
            optimizer.zero_grad()
        for rank, n in enumerate(counts):
            (loss(net, step, rank, n) * n / sum(counts)).backward()
            if form in ("accumulated", "twice"):
                (loss(net, 100 + step, rank, 8) / members).backward()
        clip(net, form)
        optimizer.step()
    return tiny.values(net), optimizer.state_dict()["state"], [p.grad for p in net.parameters()]


def require_near(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=2e-6)


def moments(state):
    return [value for number in sorted(state) for _, value in sorted(state[number].items()) if isinstance(value, torch.Tensor)]


CASES = [("Net", 2, 1, "plain", "sgd"), ("Net", 2, 1, "plain", "adam"), ("Net", 4, 1, "plain", "sgd"), ("Net", 4, 2, "plain", "sgd"),
         ("Net", 4, 2, "uneven", "adam"), ("Net", 3, 1, "uneven", "sgd"), ("Net", 2, 1, "one without", "sgd"), ("Net", 4, 2, "one without", "sgd"),
         ("Unbiased", 3, 1, "plain", "sgd"), ("Sequence", 2, 1, "plain", "sgd"), ("Sequence", 4, 2, "uneven", "sgd"),
         ("Elsewhere", 2, 1, "plain", "sgd"), ("Elsewhere", 4, 2, "uneven", "sgd"), ("Net", 2, 1, "accumulated", "sgd"),
         ("Net", 2, 1, "evaluating", "sgd"), ("Net", 2, 1, "clipped", "sgd"), ("Net", 4, 2, "clipped", "sgd"), ("Net", 2, 1, "kept", "sgd"),
         ("Net", 2, 1, "twice", "sgd")]


@pytest.mark.parametrize("name, members, groups, form, optimizer", CASES)
def test_training_ends_like_one_process(pool, tmp_path, name, members, groups, form, optimizer):
    results = pool(members).run(train, name, tmp_path, groups, form, optimizer)
    values, state, gradients = oracle(name, members, form, optimizer)
    for ours, moments_of_ours, gradients_of_ours in results:
        assert tiny.equal(ours, results[0][0])
        require_near(ours, values)
        require_near(moments(moments_of_ours), moments(state))
        require_near(gradients_of_ours, gradients)


def watched(folder, groups):
    """Rank 0 looks at everything after every step, the others at nothing."""
    net, optimizer = wrapped(Net(), folder, groups, adam)
    seen = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss(net, step, shoal.rank(), 8).backward()
        optimizer.step()
        if shoal.rank() == 0:
            net.eval()
            with torch.no_grad():
                output = net(torch.ones(2, 6))
            net.train()
            seen.append([*tiny.values(net), *[m.clone() for m in moments(optimizer.state_dict()["state"])],
                         *[p.grad.clone() for p in net.parameters()], output])
    return seen


@pytest.mark.parametrize("members, groups", [(2, 1), (4, 2)])
def test_one_member_alone_sees_everything_as_it_is_after_each_step(pool, tmp_path, members, groups):
    seen = pool(members).run(watched, tmp_path, groups)[0]
    net = Net()
    optimizer = adam(net)
    for step in range(STEPS):
        optimizer.zero_grad()
        for rank in range(members):
            (loss(net, step, rank, 8) / members).backward()
        optimizer.step()
        with torch.no_grad():
            output = net(torch.ones(2, 6))
        require_near(seen[step], [*tiny.values(net), *moments(optimizer.state_dict()["state"]), *[p.grad for p in net.parameters()], output])


def stepped(folder):
    """What the optimizer is given to step of a divided weight, and whether the model is the user's between two steps."""
    net, optimizer = wrapped(Net(), folder, 1)
    shapes = []
    tiny.behind_ours(optimizer, lambda o, *_: shapes.append([tuple(p.shape) for p in o.param_groups[0]["params"]]))
    for step in range(5):
        optimizer.zero_grad()
        loss(net, step, shoal.rank(), 8).backward()
        optimizer.step()
    mine = [p is q for p, q in zip(optimizer.param_groups[0]["params"], net.module.parameters())]
    return shapes[0], shapes[-1], all(mine), len(optimizer.state) == len(mine)


def test_the_optimizer_steps_the_members_own_strip_alone(pool, tmp_path):
    whole = [tuple(p.shape) for p in Net().parameters()]
    for rank, (first, last, restored, as_many) in enumerate(pool(2).run(stepped, tmp_path)):
        assert first == whole and restored and as_many
        strips = {2: ((150, 256), (151, 256))[rank], 4: ((128, 301), (129, 301))[rank]}
        assert last == [strips.get(i, shape) for i, shape in enumerate(whole)]


def not_divided(which):
    net = Net()
    if which == "tied":
        net.deep = nn.Linear(301, 256)
        net.back, net.last = nn.Linear(256, 301), nn.Linear(301, 3)
        net.back.weight = net.wide.weight
        net.forward = lambda x: net.last(torch.tanh(net.back(torch.tanh(net.deep(torch.tanh(net.wide(torch.tanh(net.first(x)))))))))
    if which == "frozen":
        net.wide.weight.requires_grad_(False)
    optimizer = torch.optim.Adafactor(net.parameters()) if which == "adafactor" else sgd(net)
    net, optimizer = shoal.data_parallel(net, optimizer, plan="hybrid:1")
    for step in range(STEPS):
        optimizer.zero_grad()
        if which == "no_sync" and step == 0:
            with net.no_sync():
                loss(net, 100, shoal.rank(), 8).backward()
        loss(net, step, shoal.rank(), 8).backward()
        if which == "read":
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    names = [name for name, p in net.module.named_parameters() if p.requires_grad]
    return [names[number] for number in net._core.divided], tiny.values(net)


@pytest.mark.parametrize("which, expected", [("", ["wide.weight", "deep.weight"]), ("tied", ["deep.weight"]), ("frozen", ["deep.weight"]),
                                             ("adafactor", []), ("no_sync", []), ("read", [])])
def test_only_layers_that_can_be_are_divided(pool, which, expected):
    results = pool(2).run(not_divided, which)
    assert [divided for divided, _ in results] == [expected] * 2
    assert tiny.equal(results[0][1], results[1][1])


def joined(folder):
    """Rank 1 runs out of data while the layers are divided."""
    net, optimizer = wrapped(Net(), folder, 1)
    for step in range(5):
        optimizer.zero_grad()
        loss(net, step, shoal.rank(), 8).backward()
        optimizer.step()
    divided = len(net._core.divided)
    with net.join():
        for step in range(5, 9 if shoal.rank() == 0 else 6):
            optimizer.zero_grad()
            loss(net, step, shoal.rank(), 8).backward()
            optimizer.step()
    return divided, len(net._core.divided), tiny.values(net)


def test_members_that_run_out_of_data_make_layers_whole(pool, tmp_path):
    results = pool(2).run(joined, tmp_path)
    assert [result[:2] for result in results] == [(2, 0)] * 2
    net = Net()
    optimizer = sgd(net)
    for step in range(9):
        optimizer.zero_grad()
        ranks = range(2 if step < 6 else 1)
        for rank in ranks:
            (loss(net, step, rank, 8) / len(ranks)).backward()
        optimizer.step()
    for *_, values in results:
        require_near(values, tiny.values(net))


SAVING = """
import sys, torch, shoal, test_divided, tiny
torch.set_num_threads(1)
net = test_divided.Net()
net, optimizer = shoal.data_parallel(net, test_divided.adam(net), plan="hybrid:1")
for step in range(6):
    optimizer.zero_grad()
    test_divided.loss(net, step, shoal.rank(), 8).backward()
    optimizer.step()
if shoal.rank() == 0:  # while the other ends
    torch.save([tiny.values(net), optimizer.state_dict()], sys.argv[1])
"""


def test_the_last_values_are_whole_while_the_others_end(tmp_path):
    run = launch(2, [sys.executable, "-c", SAVING, str(tmp_path / "saved")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    values, state = torch.load(tmp_path / "saved")
    net = Net()
    optimizer = adam(net)
    for step in range(6):
        optimizer.zero_grad()
        for rank in range(2):
            (loss(net, step, rank, 8) / 2).backward()
        optimizer.step()
    require_near(values, tiny.values(net))
    require_near(moments(state["state"]), moments(optimizer.state_dict()["state"]))


DYING = """
import os, signal, sys, torch, shoal, test_divided, tiny
torch.set_num_threads(1)
net = test_divided.Net()
net, optimizer = shoal.data_parallel(net, test_divided.sgd(net), plan="hybrid:1")
weight = net.module.wide.weight

def die(*_):
    if step == 5 and shoal.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[1] == "forward":
    net.module.deep.register_forward_pre_hook(die)
elif sys.argv[1] == "backward":
    net.module.deep.register_full_backward_hook(die)
else:
    tiny.behind_ours(optimizer, die)
try:
    for step in range(8):
        optimizer.zero_grad()
        test_divided.loss(net, step, shoal.rank(), 8).backward()
        optimizer.step()
except shoal.PeerLost as error:
    print("SAW", step, flush=True)
    try:
        weight.sum()
        print("WHOLE", flush=True)
    except shoal.PeerLost as error:
        print("REFUSED", flush=True)
    raise
"""


@pytest.mark.parametrize("moment", ["backward", *(pytest.param(each, marks=pytest.mark.slow) for each in ("forward", "step"))])
def test_a_killed_member_ends_the_others_and_its_strips_are_not_made_up(moment):
    run = launch(2, [sys.executable, "-c", DYING, moment], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 3, err
    assert "SAW" in out and "REFUSED" in out and "WHOLE" not in out, out
    assert "rank 1" in err.splitlines()[-1], err


def saved_and_resumed(folder, where, first, last):
    """Steps first to last of a run, from the checkpoint of `first` and into that of `last`."""
    net = Net()
    net, optimizer = shoal.data_parallel(net, adam(net), plan="hybrid:1")
    if first > 0:
        shoal.load(f"{where}/{first}", net, optimizer)
    for step in range(first, last):
        optimizer.zero_grad()
        loss(net, step, shoal.rank(), 8).backward()
        optimizer.step()
    divided = len(net._core.divided)
    shoal.save(f"{where}/{last}", net, optimizer)
    return divided, tiny.values(net), moments(optimizer.state_dict()["state"])


def test_a_resumed_run_goes_on_divided_with_the_same_bits(pool, tmp_path):
    ways = [(0, 8)], [(0, 5), (5, 8)]
    ends = []
    for number, parts in enumerate(ways):
        where = tmp_path / str(number)
        for first, last in parts:
            results = pool(2).run(saved_and_resumed, tmp_path, where, first, last)
        assert [result[0] for result in results] == [2, 2]
        ends.append(results[0])
    assert tiny.equal(ends[0][1], ends[1][1])
    assert tiny.equal(ends[0][2], ends[1][2])
