"""A model whose parameters are served (plan ps): against one process that takes the mean, and what cannot be served."""

import os
import pathlib
import signal
import time

import pytest
import torch

import shoal


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 4))


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 20, generator=generator), torch.randint(0, 4, (8,), generator=generator)


def optimizer_of(kind, model):
    if kind == "groups":
        groups = [{"params": model[0].parameters(), "lr": 0.05, "momentum": 0.9}, {"params": model[2].parameters(), "weight_decay": 0.01}]
        return torch.optim.SGD(groups, lr=0.1)
    return {"sgd": lambda p: torch.optim.SGD(p, lr=0.1), "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
            "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05), "revised": lambda p: shoal.AdaptiveRevision(p, lr=0.05)}[kind](model.parameters())


def go(model, optimizer, schedule, batches):
    """A step for each of these batches of this member's; its losses."""
    losses = []
    for step in batches:
        x, y = batch(shoal.rank(), step)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def train(plan, kind, steps, batches=1000):
    model = network()
    optimizer = optimizer_of(kind, model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    model, optimizer = shoal.data_parallel(model, optimizer, plan=plan)
    losses = go(model, optimizer, schedule, [step % batches for step in range(steps)])
    model.flush()
    return {name: value.clone() for name, value in model.state_dict().items()}, losses


def alone(kind, steps, members):
    model = network()
    optimizer = optimizer_of(kind, model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(members):
            x, y = batch(rank, step)
            (torch.nn.functional.cross_entropy(model(x), y) / members).backward()
        optimizer.step()
        schedule.step()
    return model.state_dict()


@pytest.mark.parametrize("kind", ["sgd", "groups", "adam", "adagrad", "revised"])
def test_whole_clocks_are_the_steps_of_one_process(pool, kind):
    expected = alone(kind, 12, 3)
    results = pool(3).run(train, "ps", kind, 12)
    for parameters, _ in results:
        for name, value in parameters.items():
            assert torch.equal(value, results[0][0][name])
            torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("plan", ["ps:ssp:2", "ps:essp:2", "ps:cap:2", "ps:dssp:0:2", "ps:pssp:1:1", "ps:vap:0.05", "ps:cvap-strong:2:0.05",
                                  "ps:significance:0.01:2", "ps:async", "ps:bsp:1", "ps:bsp+bf16", "ps:bsp+int8", "ps:essp:2+int8", "ps:async+bf16"])
def test_stale_parameters_train_too(pool, plan):
    results = pool(3).run(train, plan, "sgd", 60, 2)
    for parameters, losses in results:
        assert all(torch.equal(value, results[0][0][name]) for name, value in parameters.items())
        # Under ps:bsp:1 whoever comes last is dropped, on a busy machine always the same member: its loss may rise.
        assert plan == "ps:bsp:1" or sum(losses[-6:]) < sum(losses[:6])
    if plan == "ps:bsp:1":
        assert any(sum(losses[-6:]) < sum(losses[:6]) for _, losses in results)


def behind_the_others(folder, steps):
    """The last member's first gradient comes when the others have done all of their steps."""
    model = network()
    model, optimizer = shoal.data_parallel(model, torch.optim.SGD(model.parameters(), lr=0.1), plan="ps:bsp:1")
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    marks = [pathlib.Path(folder) / str(rank) for rank in range(shoal.size() - 1)]
    if shoal.rank() < shoal.size() - 1:
        go(model, optimizer, schedule, range(steps))
        model(batch(0, 0)[0])  # begins with the parameters of the last step: it is complete
        marks[shoal.rank()].touch()
    else:
        while not all(mark.exists() for mark in marks):
            time.sleep(0.001)
        go(model, optimizer, schedule, [0])
    model.flush()
    return {name: value.clone() for name, value in model.state_dict().items()}, model.dropped


def test_with_backups_a_late_gradient_is_dropped_and_counted(pool, tmp_path):
    """And nothing of it is in the parameters: they are those of one process that takes the others' mean."""
    expected = alone("sgd", 4, 2)
    results = pool(3).run(behind_the_others, str(tmp_path), 4)
    assert [dropped for _, dropped in results] == [0, 0, 1]
    for parameters, _ in results:
        for name, value in parameters.items():
            torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5)


def test_late_gradients_are_revised(pool):
    results = pool(3).run(train, "ps:essp:2", "revised", 60, 2)
    for parameters, losses in results:
        assert all(torch.equal(value, results[0][0][name]) for name, value in parameters.items())
        assert sum(losses[-6:]) < sum(losses[:6])


def refused(optimizer):
    model = network()
    with pytest.raises(shoal.Error) as caught:
        shoal.data_parallel(model, optimizer(model.parameters()), plan="ps")
    return str(caught.value)


def nesterov(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)


def test_what_no_server_can_step_is_refused(pool):
    for line in pool(2).run(refused, nesterov):
        assert line.startswith("optimizer: no server steps as this SGD does (SGD with momentum, Adam, Adagrad and shoal.AdaptiveRevision can be served")


def looked_at(plan):
    """Evaluation and state between steps are those of the newest step; what is loaded is everybody's."""
    model = network()
    model, optimizer = shoal.data_parallel(model, torch.optim.SGD(model.parameters(), lr=0.1), plan=plan)
    x, y = batch(0, 0)
    seen = []
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            seen.append(torch.nn.functional.cross_entropy(model(x), y).item())
        weights = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict({name: torch.full_like(value, shoal.rank()) for name, value in weights.items()})
    return seen, weights, {name: value.clone() for name, value in model.state_dict().items()}


def test_what_is_looked_at_between_steps_is_the_newest(pool):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = batch(0, 0)
    expected = []
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            expected.append(torch.nn.functional.cross_entropy(model(x), y).item())
    for seen, weights, loaded in pool(2).run(looked_at, "ps"):
        assert seen == pytest.approx(expected, abs=1e-5)
        for name, value in model.state_dict().items():
            torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-5)
            assert (loaded[name] == 0).all()


def told(at):
    """After which steps a checkpoint is due, where rank 1 is sent USR1 in step `at`."""
    model = network()
    model, optimizer = shoal.data_parallel(model, torch.optim.SGD(model.parameters(), lr=0.1), plan="ps:ssp:3")
    due = []
    for step in range(40):
        if shoal.rank() == 1 and step == at:
            os.kill(os.getpid(), signal.SIGUSR1)
        x, y = batch(shoal.rank(), step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step(None)  # no closure
        if shoal.checkpoint_due():
            due.append(step)
    return due


def test_a_signal_to_one_member_is_answered_by_all_after_the_same_step(pool):
    due = pool(2).run(told, 5)
    assert due[0] == due[1] and len(due[0]) == 1


def mistakes():
    lines = []
    for step in (_thawed, _twice, _without_gradient, _state):
        try:
            step()
        except shoal.Error as error:
            lines.append(str(error))
    return lines


def _wrapped(**options):
    model = network()
    return shoal.data_parallel(model, torch.optim.SGD(model.parameters(), lr=0.1, **options), plan="ps")


def _thawed():
    model = network()
    model[0].bias.requires_grad_(False)
    model, optimizer = shoal.data_parallel(model, torch.optim.SGD(model.parameters(), lr=0.1), plan="ps")
    model.module[0].bias.requires_grad_(True)
    model(batch(0, 0)[0]).sum().backward()
    optimizer.step()


def _twice():
    model, optimizer = _wrapped()
    shoal.data_parallel(model.module, optimizer, plan="ps")


def _without_gradient():
    model, optimizer = _wrapped(momentum=0.9)
    optimizer.step()


def _state():
    model = network()
    model, optimizer = shoal.data_parallel(model, torch.optim.Adam(model.parameters()), plan="ps")
    other = network()
    trained = torch.optim.Adam(other.parameters())
    for bias in (None, torch.zeros(50)):
        other(batch(0, 0)[0]).sum().backward()
        other[0].bias.grad = bias
        trained.step()
    optimizer.load_state_dict(trained.state_dict())


def test_what_servers_cannot_do_is_one_line(pool):
    for lines in pool(2).run(mistakes):
        assert lines == [
            "optimizer: a parameter has a gradient, and was not trained when the model was wrapped (wrap it when all that trains is known)",
            "parameter 0.weight: another model of data_parallel() trains it already (wrap once what shares parameters)",
            "a parameter without a gradient: servers that step sgd:0.1:0.9 would move it (choose another plan for this model)",
            "optimizer.load_state_dict(): parameters of one group have taken different numbers of steps (servers count them together; choose another plan)",
        ]
