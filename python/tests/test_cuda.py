"""What other tests train on the CPU, on a GPU: their own scenarios with that as PyTorch's default device, all members on the first one. The oracle runs there too."""

import contextlib
import importlib
import random

import pytest
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import backend_cases
import shoal
import tiny
from against_one import MEMBERS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


def on_host(value):
    if isinstance(value, torch.Tensor):
        return value.cpu()
    return type(value)(map(on_host, value)) if isinstance(value, (list, tuple)) else value


@contextlib.contextmanager
def gpu():
    torch.set_default_device("cuda")
    try:
        yield
    finally:
        torch.set_default_device(None)


def on_gpu(module, scenario, *arguments):
    """What a scenario of another test module comes to on the GPU, its tensors brought to the host."""
    with gpu():
        return on_host(getattr(importlib.import_module(module), scenario)(*arguments))


def trained_by_all(pool, members, module, scenario, *arguments):
    return pool(members).run(on_gpu, module, scenario, *arguments)


@pytest.mark.parametrize("net", ["plain", "normalised", "attention"])
@pytest.mark.parametrize("kind", ["sgd", "adam", "fused", "foreach", "adamw"])
def test_steps_by_parameter_end_in_the_bits_of_one_process(pool, net, kind):
    between = importlib.import_module("test_steps").plainly
    expected = on_gpu("test_steps", "expected", net, kind, between)
    for values, waited in trained_by_all(pool, MEMBERS, "test_steps", "run", net, kind, between):
        assert tiny.equal(values, expected)
        assert waited[-1]


@pytest.mark.parametrize("between", ["schedules", "evaluates", "copies", "saves", "looks_at_gradients", "zeros", "drops", "doubles"])
def test_what_is_done_between_step_and_forward_sees_the_step_taken(pool, between):
    between = getattr(importlib.import_module("test_steps"), between)
    expected = on_gpu("test_steps", "expected", "plain", "adam", between)
    for values, _ in trained_by_all(pool, MEMBERS, "test_steps", "run", "plain", "adam", between):
        assert tiny.equal(values, expected)


def test_gradient_accumulation(pool):
    steps = importlib.import_module("test_steps")
    with gpu():
        expected = on_host(steps.expected_of(tiny.model(), steps.two_losses))
    for values in trained_by_all(pool, MEMBERS, "test_steps", "accumulated", None):
        assert tiny.equal(values, expected)


@pytest.mark.parametrize("net, form", [("Net", "plain"), ("Net", "accumulated"), ("Net", "by parameter"), ("Twice", "plain"), ("Elsewhere", "plain")])
def test_factors_end_like_one_process(pool, tmp_path, net, form):
    factors = importlib.import_module("test_factors")
    results = trained_by_all(pool, factors.MEMBERS, "test_factors", "train", net, tmp_path, form)
    expected = on_gpu("test_factors", "oracle", net, form)
    for values in results:
        assert tiny.equal(values, results[0])
        factors.expect_near(values, expected)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("net", ["Net", "Bag", "Tied"])
def test_rows_end_like_one_process(pool, net, sparse):
    results = trained_by_all(pool, 3, "test_tables", "train", net, sparse, "SGD", "plain")
    expected = importlib.import_module("test_tables").oracle(net, "SGD", "plain")
    for values, _, way in results:
        assert way == "rows" and tiny.equal(values, results[0][0])
        for ours, theirs in zip(values, expected):
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["bf16", "int8", "topk:0.02", "powersgd:2"])
def test_lossy_ways_keep_members_equal_and_learn(pool, way):
    results = trained_by_all(pool, 3, "test_lossy", "trained", way, 60)
    values, plan, before, after = results[0]
    assert all(tiny.equal(theirs, values) for theirs, *_ in results)
    assert plan["choice"] == way and after < 0.7 * before


@pytest.mark.parametrize("plan", ["local:4", "diloco:6:3"])
def test_local_steps_come_together(pool, plan):
    results = trained_by_all(pool, 3, "players", "trained", plan, 12, tiny.model, tiny.sgd)
    for _, after, _ in results:
        assert tiny.equal(after, results[0][1])


def test_a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(pool, tmp_path):
    assert trained_by_all(pool, 2, "test_checkpoint", "continued", str(tmp_path), 5) == [(True, True)] * 2


def scaled(_=None):
    """Half precision, whose scaled gradients are looked at together before any is stepped."""
    net = tiny.model()
    net, optimizer = tiny.wrap(net, torch.optim.SGD(net.parameters(), lr=0.1))
    scaler = torch.amp.GradScaler("cuda")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = tiny.loss(net, 0, shoal.rank())
        losses.append(loss.item())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return tiny.values(net.module), losses


def test_scaled_gradients(pool):
    results = trained_by_all(pool, MEMBERS, "test_cuda", "scaled")
    assert tiny.equal(results[0][0], results[1][0])
    assert all(losses[-1] < losses[0] for _, losses in results)


# --- the c10d backend

def other_collectives(seed, length):
    """Which operations end otherwise on the device than on the host."""
    shoal.init_process_group()
    rng, differing = random.Random(seed), []
    for site in range(length):
        name, state = rng.choice(backend_cases.COLLECTIVES), rng.getstate()
        expected, work = backend_cases.one_of_each(None, name, rng, site)
        work.wait()
        rng.setstate(state)
        with gpu():
            there, work = backend_cases.one_of_each(None, name, rng, site)
            work.wait()
            if not backend_cases.same(on_host(there), expected):
                differing.append((name, site))
    return differing


@pytest.mark.parametrize("seed", [1, 2])
def test_collectives_end_like_those_of_the_host(pool, seed):
    assert pool(3).run(other_collectives, seed, 60) == [[]] * 3


def late_kernels(_=None):
    """What was computed before an operation, however late, is in it; what is computed after it has its result."""
    shoal.init_process_group()
    right = []
    for step in range(5):
        x = torch.zeros(1 << 20, device="cuda")
        torch.cuda._sleep(100_000_000)
        x += shoal.rank() + step
        work = distributed.all_reduce(x, async_op=True)
        (work.wait() if step % 2 else work.get_future().wait())
        right.append(bool((2 * x == 2 * sum(rank + step for rank in range(shoal.size()))).all()))
    return right


def test_operations_come_between_what_is_computed_before_and_after(pool):
    assert pool(3).run(late_kernels, None) == [[True] * 5] * 3


def by_ddp(_=None):
    """Parameters after steps by DistributedDataParallel on our backend, and on gloo."""
    shoal.init_process_group()
    ends = []
    for group in (None, distributed.new_group(backend="gloo")):
        with gpu():
            net = DistributedDataParallel(tiny.model(), process_group=group, bucket_cap_mb=0.0001)
            optimizer = tiny.sgd(net)
            for step in range(5):
                tiny.step(net, optimizer, step, shoal.rank())
            ends.append(on_host(tiny.values(net.module)))
    return ends


def test_distributed_data_parallel(pool):
    results = pool(3).run(by_ddp, None)
    for ours, theirs in results:
        assert tiny.equal(ours, results[0][0])
        assert all(torch.allclose(a, b, rtol=1e-6, atol=1e-7) for a, b in zip(ours, theirs))
