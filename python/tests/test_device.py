"""Gradients of a device, whose copies come to the host late: the same ends, bit for bit. Here the CPU pretends to be some (SHOAL_PRETEND_DEVICE),
whose copies are late by different times."""

import importlib
import os

import pytest

import tiny
import test_steps
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
