"""Spare members that only add: the end is that of the workers alone, and the servers take it over."""

import json

import shoal
import tiny

WORKERS, SERVERS = 2, 1
STEPS = 6


def train(_):
    net, optimizer = tiny.wrap(tiny.model(), plan=f"servers:{SERVERS}")
    with net.join():
        for step in range(STEPS if shoal.rank() < WORKERS else 0):
            optimizer.zero_grad()
            tiny.loss(net, step, shoal.rank()).backward()
            optimizer.step()
    return tiny.values(net.module), json.loads(net.plan)


def test_training_ends_like_that_of_the_workers_alone(pool):
    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda alone, rank=rank: tiny.loss(alone, step, rank).backward() for rank in range(WORKERS)])
    for values, plan in pool(WORKERS + SERVERS).run(train, 0):
        assert tiny.equal(values, tiny.values(net))
        assert {unit["way"] for unit in plan["units"]} == {"servers:1"}


def train_everywhere(_):
    net, optimizer = tiny.wrap(tiny.model(), plan="servers:1")
    if shoal.rank() != shoal.size() - 1:
        return None
    try:
        tiny.loss(net, 0, shoal.rank()).backward()
    except shoal.Error as error:
        return error.exit_code, str(error)


def test_a_server_that_trains_is_told(pool):
    code, line = pool(2).run(train_everywhere, 0)[-1]
    assert code == 2 and "rank 1 is a server of this plan" in line and "model.join()" in line
