"""A model whose parameters are served (plan ps): against one process that takes the mean, and what cannot be served."""

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
            "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05)}[kind](model.parameters())


def train(plan, kind, steps, batches=1000):
    model = network()
    optimizer = optimizer_of(kind, model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    model, optimizer = shoal.data_parallel(model, optimizer, plan=plan)
    losses = []
    for step in range(steps):
        x, y = batch(shoal.rank(), step % batches)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
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


@pytest.mark.parametrize("kind", ["sgd", "groups", "adam", "adagrad"])
def test_whole_clocks_are_the_steps_of_one_process(pool, kind):
    expected = alone(kind, 12, 3)
    results = pool(3).run(train, "ps", kind, 12)
    for parameters, _ in results:
        for name, value in parameters.items():
            assert torch.equal(value, results[0][0][name])
            torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("plan", ["ps:ssp:2", "ps:essp:2", "ps:async", "ps:bsp:1"])
def test_stale_parameters_train_too(pool, plan):
    results = pool(3).run(train, plan, "sgd", 60, 2)
    for parameters, losses in results:
        assert all(torch.equal(value, results[0][0][name]) for name, value in parameters.items())
        assert sum(losses[-5:]) < sum(losses[:5])


def refused(optimizer):
    model = network()
    with pytest.raises(shoal.Error) as caught:
        shoal.data_parallel(model, optimizer(model.parameters()), plan="ps")
    return str(caught.value)


def nesterov(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True)


def test_what_no_server_can_step_is_refused(pool):
    for line in pool(2).run(refused, nesterov):
        assert line.startswith("optimizer: no server steps as this SGD does (SGD with momentum, Adam and Adagrad can be served")
