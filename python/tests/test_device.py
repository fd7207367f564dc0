"""Gradients of a device, whose copies come to the host late: the same ends, bit for bit. Here the CPU pretends to be some (SHOAL_PRETEND_DEVICE),
whose copies are late by different times."""

import importlib
import json
import os

import pytest
import torch
import torch.nn.functional as F

import players
import shoal
import tiny
import test_lossy
import test_steps
import test_tables
from against_one import MEMBERS, RANKS, Tied, check, one_step
from test_factors import NETS, train


def on_device(devices, module, scenario, *arguments):
    """`devices`: on which of them parameters lie in turns, "0,1"."""
    os.environ["SHOAL_PRETEND_DEVICE"] = devices
    try:
        return getattr(importlib.import_module(module), scenario)(*arguments)
    finally:
        del os.environ["SHOAL_PRETEND_DEVICE"]


@pytest.mark.parametrize("devices", ["0", "1", "0,1"])
def test_gradients(pool, devices):
    net = Tied()
    check(pool(MEMBERS).run(on_device, devices, "against_one", "one_step", Tied), net, tiny.sgd(net),
          [lambda n, s, r=r: tiny.loss(n, s, r).backward() for r in RANKS])


def test_steps_by_parameter(pool):
    for values, waited in pool(MEMBERS).run(on_device, "0,1", "test_steps", "run", "normalised", "adam", test_steps.plainly):
        assert tiny.equal(values, test_steps.expected("normalised", "adam", test_steps.plainly))
        assert waited[-1]


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("form", ["plain", "accumulated"])
def test_factors(pool, tmp_path, name, form):
    host = pool(MEMBERS).run(train, name, tmp_path, form)
    device = pool(MEMBERS).run(on_device, "0,1", "test_factors", "train", name, tmp_path, form)
    for a, b in zip(host, device):
        assert tiny.equal(list(a), list(b))


@pytest.mark.parametrize("net", test_tables.NETS)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("form", ["plain", "accumulated"])
def test_rows(pool, net, sparse, form):
    host = pool(MEMBERS).run(test_tables.train, net, sparse, "SGD", form)
    device = pool(MEMBERS).run(on_device, "0,1", "test_tables", "train", net, sparse, "SGD", form)
    for (values, seen, way), (theirs, seen_there, way_there) in zip(host, device):
        assert tiny.equal(values, theirs)
        assert (seen, way) == (seen_there, way_there) and way == "rows"


@pytest.mark.parametrize("way", ["bf16", "int8", "topk:0.02", "powersgd:2"])
def test_lossy_ways(pool, tmp_path, way):
    """What they keep from step to step, too. Both replay one plan: what is packed together follows from what was measured."""
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(pool(MEMBERS).run(test_lossy.trained, way, 4)[0][1]))
    host = pool(MEMBERS).run(test_lossy.trained, str(plan), 20)
    device = pool(MEMBERS).run(on_device, "0,1", "test_lossy", "trained", str(plan), 20)
    for (values, used, *_), (theirs, *_) in zip(host, device):
        assert way in [unit["way"] for unit in used["units"]] and tiny.equal(values, theirs)


@pytest.mark.parametrize("plan", ["local:4", "diloco:6:3"])
def test_local_steps(pool, plan):
    host = pool(MEMBERS).run(players.trained, plan, 12)
    for (_, values, _), (_, theirs, _) in zip(host, pool(MEMBERS).run(on_device, "0,1", "players", "trained", plan, 12)):
        assert tiny.equal(values, theirs)


def test_a_resumed_run(pool, tmp_path):
    assert pool(MEMBERS).run(on_device, "0,1", "test_checkpoint", "continued", str(tmp_path), 5) == [(True, True)] * MEMBERS


def trained_and_saved(default, plan, folder):
    """With that default device of PyTorch; the model and its batches lie on the host."""
    net, batches = tiny.model(), [tiny.data(step, shoal.rank()) for step in range(6)]
    torch.set_default_device(default)
    try:
        net, optimizer = tiny.wrap(net, plan=plan)
        for x, y in batches:
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        net.flush()
        shoal.save(f"{folder}/{default}", net, optimizer, step=6)
        assert shoal.load(f"{folder}/{default}", net, optimizer) == {"step": 6}
    finally:
        torch.set_default_device(None)
    return tiny.values(net)


@pytest.mark.parametrize("plan", ["direct", "p3", "int8", "powersgd:2", "local:3", "ps:bsp"])
def test_the_default_device_is_for_what_the_script_makes(pool, tmp_path, plan):
    """On meta nothing has memory: what of ours lay there would be no number."""
    expected = pool(MEMBERS).run(trained_and_saved, "cpu", plan, str(tmp_path))
    for values, theirs in zip(pool(MEMBERS).run(trained_and_saved, "meta", plan, str(tmp_path)), expected):
        assert tiny.equal(values, theirs)
