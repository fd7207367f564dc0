"""Members that run out of data at different times: nobody waits for ever, and all end with the same bits."""

import pytest
import torch
from torch import nn

import shoal
import tiny


def train(steps_by_rank, clip=None, make=tiny.model, epochs=1):
    net = make()
    net, optimizer = tiny.wrap(net, torch.optim.Adam(net.parameters(), lr=0.01))
    for _ in range(epochs):
        with net.join():
            for step in range(steps_by_rank[shoal.rank()]):
                optimizer.zero_grad()
                tiny.loss(net, step, shoal.rank()).backward()
                if clip is not None:
                    nn.utils.clip_grad_norm_(net.parameters(), clip)
                optimizer.step()
    state = optimizer.state_dict()["state"]
    return tiny.values(net), [value for index in sorted(state) for value in state[index].values()]


@pytest.mark.parametrize("steps", [[3, 5], [5, 3], [0, 2], [4, 4]])
def test_all_end_alike_and_the_last_steps_are_means_over_those_with_data(pool, steps):
    results = pool(2).run(train, steps)
    assert tiny.equal(results[0][0], results[1][0]) and tiny.equal(results[0][1], results[1][1])
    net = tiny.model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(max(steps)):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in range(2) if step < steps[r]])
    assert tiny.equal(results[0][0], tiny.values(net))


def test_what_a_script_does_between_backward_and_step_reaches_those_who_wait(pool):
    results = pool(3).run(train, [2, 6, 4], 0.01)
    assert all(tiny.equal(results[0][0], values) and tiny.equal(results[0][1], state) for values, state in results)


def test_buffers_end_alike_too(pool):
    results = pool(3).run(train, [1, 4, 3], None, tiny.Normalised)
    assert all(tiny.equal(results[0][0], values) for values, _ in results)


def test_several_epochs(pool):
    results = pool(2).run(train, [2, 3], None, tiny.model, 3)
    assert tiny.equal(results[0][0], results[1][0])


def empty_batch():
    """A batch without samples weighs nothing, whatever its loss."""
    net, optimizer = tiny.wrap(tiny.model())
    optimizer.zero_grad()
    tiny.loss(net, 0, shoal.rank(), 8 if shoal.rank() == 0 else 0).backward()
    optimizer.step()
    return tiny.values(net)


def test_an_empty_batch_counts_nothing(pool):
    results = pool(2).run(empty_batch)
    net = tiny.model()
    tiny.oracle_step(net, tiny.sgd(net), [lambda n: tiny.loss(n, 0, 0).backward()])
    for values in results:
        assert tiny.equal(values, tiny.values(net))
