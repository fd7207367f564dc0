"""Parameters of which every member steps a part ("owners"): training has the bits of one process that steps all; whoever looks at a parameter, a gradient or
the optimizer's state sees all of it, without the others' help."""

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

import shoal
import tiny
from pool import launch, notes_of_run
from test_divided import Net, loss, moments

PLAN = "direct,wide.weight=owners,deep.weight=owners"  # the rest in rank order, too
MEASURED, STEPS = 3, 7  # the plan takes over after the first ones, whose means may be added in other orders
OPTIMIZERS = {
    "sgd": lambda of: torch.optim.SGD(of, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda of: torch.optim.Adam(of, lr=0.01),
    "adamw": lambda of: torch.optim.AdamW(of, lr=0.01, amsgrad=True),
}


def made(optimizer):
    net = Net()
    large = [p for p in net.parameters() if p.numel() > 20_000]
    return net, OPTIMIZERS[optimizer]([{"params": large, "lr": 0.02}, {"params": [p for p in net.parameters() if p.numel() <= 20_000]}])


def samples(form, rank):
    return {"uneven": 2 + 3 * rank, "one without": 0 if rank == 1 else 5}.get(form, 8)


def backward(net, form, step, rank):
    if form == "accumulated":
        loss(net, 100 + step, rank, 8).backward()
    loss(net, step, rank, samples(form, rank)).backward()


def train(optimizer, form):
    net, optimizer = made(optimizer)
    net, optimizer = shoal.data_parallel(net, optimizer, plan=PLAN)
    rank, schedule = shoal.rank(), torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for step in range(STEPS):
        if step == MEASURED:
            begun = copy.deepcopy((net.module.state_dict(), optimizer.state_dict(), schedule.state_dict(), [p.grad for p in net.parameters()]))
        if form != "kept":
            optimizer.zero_grad()
        if form == "accumulated":
            with net.no_sync():
                loss(net, 100 + step, rank, 8).backward()
        loss(net, step, rank, samples(form, rank)).backward()
        if form == "clipped":
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    held = sum(value.numel() for of in vars(optimizer)["state"].values() for value in of.values() if isinstance(value, torch.Tensor) and value.dim() > 0)
    state = moments(optimizer.state_dict()["state"])
    return len(net._core.divided), held, begun, [tiny.values(net), state, [p.grad for p in net.parameters()]]


def oracle(optimizer, form, members, begun):
    """One process that runs every member's samples, adds gradients in rank order, and steps all."""
    net, optimizer = made(optimizer)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for each, state in zip((net, optimizer, schedule), begun):
        each.load_state_dict(state)
    for parameter, gradient in zip(net.parameters(), begun[3]):
        parameter.grad = gradient
    counts = [samples(form, rank) for rank in range(members)]
    for step in range(MEASURED, STEPS):
        before = [p.grad for p in net.parameters()]
        parts = [tiny.gradients(net, lambda n, r=rank: backward(n, form, step, r)) if counts[rank] else [None] * len(before) for rank in range(members)]
        if form == "kept":  # each adds to what is there
            parts = [[g + b for g, b in zip(part, before)] for part in parts]
        for parameter, mean in zip(net.parameters(), tiny.mean_in_rank_order(parts, counts if form == "uneven" else None)):
            parameter.grad = mean * members / sum(n > 0 for n in counts) if form == "one without" else mean
        if form == "clipped":
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    return [tiny.values(net), moments(optimizer.state_dict()["state"]), [p.grad for p in net.parameters()]]


CASES = [("sgd", "plain", 3), ("adam", "plain", 2), ("adamw", "plain", 3), ("sgd", "uneven", 2), ("adam", "one without", 2), ("sgd", "accumulated", 2),
         ("adam", "clipped", 2), ("sgd", "kept", 2)]


@pytest.mark.parametrize("optimizer, form, members", CASES)
def test_training_has_the_bits_of_one_process(pool, optimizer, form, members):
    results = pool(members).run(train, optimizer, form)
    expected = oracle(optimizer, form, members, results[0][2])
    for divided, held, _, ours in results:
        assert divided == 2
        assert held < 0.6 * sum(m.numel() for m in expected[1])  # state is at the owners alone
        assert all(map(tiny.equal, ours, expected))


def two_passes(plan):
    """Each pass is exchanged, the second with the mean of the first in it; the plan takes over between the two of one step."""
    net, optimizer = made("adam")
    net, optimizer = shoal.data_parallel(net, optimizer, plan=plan)
    norms = []
    for step in range(4):
        optimizer.zero_grad()
        for part in range(2):
            loss(net, 2 * step + part, shoal.rank(), 8).backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.5))
        optimizer.step()
    return len(net._core.divided), [*norms, *tiny.values(net)]


def test_a_plan_that_takes_over_between_two_passes_of_a_step_hides_no_gradient(pool):
    whole = pool(2).run(two_passes, "direct")
    for (divided, ours), (_, expected) in zip(pool(2).run(two_passes, PLAN), whole):
        assert divided == 2
        assert all(map(torch.equal, ours, expected))


def watched():
    """Rank 0 looks at everything after every step, the others at nothing."""
    net, optimizer = made("adam")
    net, optimizer = shoal.data_parallel(net, optimizer, plan=PLAN)
    average = torch.optim.swa_utils.AveragedModel(net.module)  # looks at parameters, on all members
    seen = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss(net, step, shoal.rank(), 8).backward()
        gradient = net.module.deep.weight.grad.clone() if shoal.rank() == 0 and step % 2 else None
        optimizer.step()
        average.update_parameters(net.module)
        if shoal.rank() == 0:
            state = optimizer.state[net.module.wide.weight]["exp_avg"].clone()  # past state_dict()
            with torch.no_grad():
                output = net(torch.ones(2, 6))
            if gradient is None:
                gradient = net.module.deep.weight.grad.clone()
            seen.append([*tiny.values(net), *[m.clone() for m in moments(optimizer.state_dict()["state"])], gradient, state, output, *tiny.values(average)])
    return seen


def test_one_member_alone_sees_everything_as_it_is_after_each_step(pool):
    seen = pool(2).run(watched)[0]
    net, optimizer = made("adam")
    average = torch.optim.swa_utils.AveragedModel(net)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: loss(n, step, r, 8).backward() for r in range(2)])
        average.update_parameters(net)
        with torch.no_grad():
            output = net(torch.ones(2, 6))
        expected = [*tiny.values(net), *moments(optimizer.state_dict()["state"]), net.deep.weight.grad, optimizer.state[net.wide.weight]["exp_avg"],
                    output, *tiny.values(average)]
        assert tiny.equal(seen[step], expected), step


def saved_and_resumed(where, first, last, plan):
    """Steps first to last of a run, from the checkpoint of `first` and into that of `last`."""
    net, optimizer = made("adam")
    net, optimizer = shoal.data_parallel(net, optimizer, plan=plan)
    if first > 0:
        shoal.load(f"{where}/{first}", net, optimizer)
    for step in range(first, last):
        tiny.step(net, optimizer, step, shoal.rank())
    divided = len(net._core.divided)
    shoal.save(f"{where}/{last}", net, optimizer)
    return divided, tiny.values(net), moments(optimizer.state_dict()["state"])


def test_checkpoints_are_whole_and_go_on_with_the_same_bits(pool, tmp_path):
    """Two members: whatever the way, a mean of two is the same sum."""
    straight = pool(2).run(saved_and_resumed, tmp_path / "straight", 0, 9, "owners")[0]
    pool(2).run(saved_and_resumed, tmp_path / "parts", 0, 5, "owners")
    resumed = pool(2).run(saved_and_resumed, tmp_path / "parts", 5, 9, "owners")[0]
    pool(2).run(saved_and_resumed, tmp_path / "mixed", 0, 5, "direct")
    mixed = pool(2).run(saved_and_resumed, tmp_path / "mixed", 5, 9, "owners")[0]
    assert straight[0] == resumed[0] == 2
    for ends in (resumed, mixed):
        assert tiny.equal(straight[1], ends[1]) and tiny.equal(straight[2], ends[2])


def joined():
    """Rank 1 runs out of data while members step parts."""
    net, optimizer = made("sgd")
    net, optimizer = shoal.data_parallel(net, optimizer, plan=PLAN)
    for step in range(5):
        tiny.step(net, optimizer, step, shoal.rank())
    divided = len(net._core.divided)
    with net.join():
        for step in range(5, 9 if shoal.rank() == 0 else 6):
            tiny.step(net, optimizer, step, shoal.rank())
    return divided, len(net._core.divided), tiny.values(net)


def test_members_that_run_out_of_data_step_whole_parameters(pool):
    results = pool(2).run(joined)
    net, optimizer = made("sgd")
    for step in range(9):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in range(2 if step < 6 else 1)])
    for before, after, values in results:
        assert (before, after) == (2, 0)
        assert tiny.equal(values, tiny.values(net))


def held():
    """Something else looks into the memory of a parameter: it sees no mixture of steps."""
    net, optimizer = made("sgd")
    view = net.wide.weight.data.view(-1) if shoal.rank() == 1 else None
    net, optimizer = shoal.data_parallel(net, optimizer, plan=PLAN)
    for step in range(5):
        tiny.step(net, optimizer, step, shoal.rank())
        if step == 3:
            late = net.module.deep.weight.data.view(-1)  # from here on
    seen = torch.equal(late, net.module.deep.weight.detach().view(-1)) and (view is None or torch.equal(view, net.module.wide.weight.detach().view(-1)))
    return len(net._core.divided), seen, tiny.values(net)


def test_memory_that_is_held_elsewhere_shows_whole_steps(pool):
    results = pool(2).run(held)
    net, optimizer = made("sgd")
    for step in range(5):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in range(2)])
    for divided, seen, values in results:
        assert divided == 2 and seen
        assert tiny.equal(values, tiny.values(net))


FALLING_BACK = """
import torch, shoal, test_owners, tiny
torch.set_num_threads(1)
net = test_owners.Net()
net, optimizer = shoal.data_parallel(net, torch.optim.Adafactor(net.parameters()), plan="owners")
for step in range(5):
    tiny.step(net, optimizer, step, shoal.rank())
assert not net._core.divided
"""


def test_an_optimizer_that_looks_at_whole_parameters_steps_them_whole_and_the_report_says_so(tmp_path):
    run = launch(2, [sys.executable, "-c", FALLING_BACK], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    told = "every member steps all parameters because Adafactor is not known to step each element by itself"
    assert any(told in note for note in notes_of_run(tmp_path))


DYING = """
import os, signal, torch, shoal, test_owners, tiny
torch.set_num_threads(1)
net, optimizer = test_owners.made("sgd")
net, optimizer = shoal.data_parallel(net, optimizer, plan=test_owners.PLAN)

def die(*_):
    if step == 5 and shoal.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)

tiny.behind_ours(optimizer, die)  # its parts never come back
try:
    for step in range(8):
        tiny.step(net, optimizer, step, shoal.rank())
        net.module.wide.bias.sum()
except shoal.PeerLost:
    try:
        net.module.wide.weight.sum()
        print("WHOLE", flush=True)
    except shoal.PeerLost:
        print("REFUSED", flush=True)
    raise
"""


def test_a_killed_member_ends_the_others_and_its_parts_are_not_made_up():
    run = launch(2, [sys.executable, "-c", DYING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 3, err
    assert "REFUSED" in out and "WHOLE" not in out, out
    assert "rank 1" in err.splitlines()[-1], err


UNEVEN = """
import sys, torch, shoal, test_owners, tiny
torch.set_num_threads(1)

def train():
    net, optimizer = test_owners.made("sgd")
    net, optimizer = shoal.data_parallel(net, optimizer, plan=sys.argv[1])
    for step in range(6 + shoal.rank()):
        tiny.step(net, optimizer, step, shoal.rank())
    if sys.argv[2] == "gone":
        net.state_dict(), optimizer.state_dict()  # so that nothing waits for a look that would hold it
    return net

kept = train() if sys.argv[2] == "kept" else train() and None
"""


@pytest.mark.parametrize("model", ["kept", "gone"])
@pytest.mark.parametrize("plan", [PLAN, "hybrid:1"])
def test_who_takes_a_step_more_than_a_member_that_has_parts_hears_so_at_once(plan, model):
    """And not when it has waited as long as members may: rank 0 is there, for its parts, even if its model has gone."""
    run = launch(2, [sys.executable, "-c", UNEVEN, plan, model], {"SHOAL_TIMEOUT": "1000"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 2, err
    assert "rank 0: ended before step 6, which rank 1 begins" in err and "model.join()" in err, err
