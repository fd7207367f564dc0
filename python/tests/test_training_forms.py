"""Training as people write it, with data_parallel and with DistributedDataParallel on Shoal's backend."""

import re
import subprocess
import sys

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import shoal
import tiny
import training_forms
from members import gloo, of_module
from pool import launch, notes_of_run
from training_forms import FORMS, MEMBERS


def with_shoal(form):
    return getattr(training_forms, form)(tiny.wrap, training_forms.own_backward(shoal.rank()))


@pytest.mark.parametrize("form", FORMS)
def test_data_parallel_ends_like_one_process(pool, form):
    results = pool(MEMBERS).run(with_shoal, form)
    expected = getattr(training_forms, form)(training_forms.unwrapped, training_forms.all_backwards)
    for values in results:
        assert tiny.equal(values, expected)


@pytest.mark.slow
def test_a_model_compiled_by_inductor_ends_like_one_process(pool):
    expected = training_forms.loop(*training_forms.unwrapped(tiny.model()), training_forms.all_backwards)
    for values in pool(MEMBERS).run(with_shoal, "compiled_by_inductor"):
        torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-6)


members = of_module(MEMBERS)


def with_ddp(form):
    def wrap_on(group):
        def wrap(net, optimizer=None):
            return DistributedDataParallel(net, process_group=group), optimizer or tiny.sgd(net)

        return wrap

    backward = training_forms.own_backward(distributed.get_rank())
    return [getattr(training_forms, form)(wrap_on(group), backward) for group in (None, gloo())]


@pytest.mark.parametrize("form", FORMS)
def test_ddp_on_the_backend_ends_like_ddp_on_gloo(members, form):
    for ours, theirs in members.run(with_ddp, form):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def graphs(around):
    """How many graphs are compiled for steps with and without no_sync(): the first step, which is watched, compiles none."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    net = tiny.model()
    if around:
        net, optimizer = tiny.wrap(net)
        net = torch.compile(net, backend="aot_eager")
    else:
        net, optimizer = tiny.wrap(torch.compile(net, backend="aot_eager"))
    for step in range(4):
        optimizer.zero_grad()
        with net.no_sync():
            tiny.loss(net, 10 + step, shoal.rank()).backward()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("around", [False, True])
def test_a_model_is_compiled_once_and_whole(pool, around):
    assert pool(MEMBERS).run(graphs, around) == [1] * MEMBERS


def wide(compile_with):
    """Three layers of 1 MB between two small ones; what it ends with and how many graphs it was compiled into."""
    torch._dynamo.reset()
    graphs = []

    def uncompiled(graph, inputs):
        graphs.append(graph)
        return graph

    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(6, 512), *(nn.Linear(512, 512) for _ in range(3)), nn.Linear(512, 3))
    net, optimizer = tiny.wrap(net)
    values = training_forms.loop(torch.compile(net, backend=uncompiled) if compile_with else net, optimizer,
                                 training_forms.own_backward(shoal.rank()))
    return values, len(graphs)


def test_a_large_model_is_compiled_in_pieces_whose_gradients_leave_before_the_others(pool):
    cut, whole = pool(MEMBERS).run(wide, True), pool(MEMBERS).run(wide, False)
    for (ours, pieces), (plain, _) in zip(cut, whole):
        assert pieces == 4  # the last layer joins the one before it: alone it would not be worth a graph
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-6)  # uncompiled layers may go by their factors


WAITS = """
import torch, shoal, training_forms, tiny
backward = training_forms.own_backward(shoal.rank())
training_forms.clipped(tiny.wrap, backward)
training_forms.scaled(tiny.wrap, backward)
training_forms.lbfgs(tiny.wrap, backward)
training_forms.autocast(tiny.wrap, backward)
def look(net, optimizer):
    optimizer.zero_grad()
    backward(net, 0)
    return net.module[0].weight.grad
look(*tiny.wrap(tiny.model()))
"""


def test_the_report_names_who_waited_for_all_means_before_the_step(tmp_path):
    process = launch(MEMBERS, [sys.executable, "-c", WAITS], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    lines = [re.fullmatch(r"ranks 0, 1, \d+\.\d\d s: barrier: all means were awaited before step\(\) because (.*) read \.grad", note)
             for note in notes_of_run(tmp_path) if "barrier" in note]
    assert [line.group(1) for line in lines] == ["clip_grad_norm_", "GradScaler.step", "GradScaler.unscale_", "LBFGS.step", "look (<string>:11)"]
