"""Checkpoints of models whose parameters are served: the servers' part of the optimizer's state is in them."""

import pytest
import torch

import shoal
from test_served import go, network, optimizer_of

def made(plan, kind):
    model = network()
    optimizer = optimizer_of(kind, model)
    model, optimizer = shoal.data_parallel(model, optimizer, plan=plan)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)


def state_of(optimizer):
    state = optimizer.state_dict()["state"]
    return {(number, name): value.clone() for number, of_p in state.items() for name, value in of_p.items() if torch.is_tensor(value)}


def continued(plan, kind, path):
    model, optimizer, schedule = made(plan, kind)
    go(model, optimizer, schedule, range(4))
    shoal.save(path, model, optimizer, schedule=schedule.state_dict())
    kept = state_of(optimizer)
    undisturbed = go(model, optimizer, schedule, range(4, 9))
    model, optimizer, schedule = made(plan, kind)
    schedule.load_state_dict(shoal.load(path, model, optimizer)["schedule"])
    loaded = state_of(optimizer)
    assert kept.keys() == loaded.keys() and all(torch.equal(kept[name], loaded[name]) for name in kept)
    return undisturbed, go(model, optimizer, schedule, range(4, 9))


@pytest.mark.parametrize("name", ["folder", "it.safetensors"])
@pytest.mark.parametrize("kind", ["sgd", "groups", "adam", "adagrad", "revised"])
def test_a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(pool, tmp_path, kind, name):
    for undisturbed, resumed in pool(3).run(continued, "ps", kind, str(tmp_path / name)):
        assert undisturbed == resumed


def saved(plan, kind, path):
    model, optimizer, schedule = made(plan, kind)
    go(model, optimizer, schedule, range(4))
    shoal.save(path, model, optimizer)
    return values(model, optimizer)


def loaded(plan, kind, path):
    model, optimizer, _ = made(plan, kind)
    shoal.load(path, model, optimizer)
    return values(model, optimizer)


def values(model, optimizer):
    return {**{name: value.clone() for name, value in model.state_dict().items()}, **state_of(optimizer)}


@pytest.mark.parametrize("kind", ["groups", "adam"])
def test_any_number_of_members_and_another_plan_go_on_from_it(pool, tmp_path, kind):
    path = str(tmp_path / "it")
    expected = pool(3).run(saved, "ps", kind, path)[0]
    found = [*pool(2).run(loaded, "ps", kind, path), *pool(2).run(loaded, "auto", kind, path), loaded("ps", kind, path)]
    for theirs in found:
        assert theirs.keys() == expected.keys()
        assert all(torch.equal(theirs[name], expected[name]) for name in expected), kind


@pytest.mark.parametrize("kind", ["groups", "adam"])
def test_servers_go_on_from_a_checkpoint_of_another_plan(pool, tmp_path, kind):
    path = str(tmp_path / "it")
    expected = pool(3).run(saved, "auto", kind, path)[0]
    for theirs in pool(2).run(loaded, "ps", kind, path):
        for name in expected:
            assert torch.equal(theirs[name], expected[name]), name


def test_revised_squares_begin_as_those_of_who_stepped_without_servers(pool, tmp_path):
    path = str(tmp_path / "it")
    expected = pool(3).run(saved, "auto", "revised", path)[0]
    for theirs in pool(2).run(loaded, "ps", "revised", path):
        for number in range(4):
            assert torch.equal(theirs[number, "sum"], expected[number, "sum"])
            assert torch.equal(theirs[number, "revised"], expected[number, "sum"])
