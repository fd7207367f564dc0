"""What goes wrong quietly where gradients are hooked (research/sync.md 5): each is exact, or refused in a line that says what to do."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import shoal
import tiny
from against_one import MEMBERS, RANKS
from pool import environment
from test_launchers import free_port, variables
from test_steps import OPTIMIZERS, STEPS, expected_of, late, one_loss, parameters, trained


@pytest.mark.parametrize("wrap, name", [(DistributedDataParallel, "DistributedDataParallel"), (fully_shard, "FSDPModule")])
def test_a_model_that_exchanges_gradients_itself_is_refused(wrap, name):
    """Its hooks and ours would each average what the other has averaged, or has not yet."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        for net in (wrap(tiny.model()), nn.Sequential(wrap(tiny.model()))):
            with pytest.raises(shoal.Error, match=f"the model has a {name}, which exchanges gradients itself") as refused:
                tiny.wrap(net)
            assert refused.value.exit_code == 2 and "\n" not in str(refused.value)
    finally:
        distributed.destroy_process_group()


def test_a_model_whose_parameters_are_divided_among_members_is_refused():
    """Their gradients are of parts that only this member has, and come by another way than a parameter's own."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        net = tiny.model()
        net[2].weight = nn.Parameter(distribute_tensor(net[2].weight.detach(), init_device_mesh("cpu", (1,)), [Shard(0)]))
        with pytest.raises(shoal.Error, match="^parameter 2.weight: it is a DTensor, of which each member may hold another part") as refused:
            tiny.wrap(net)
        assert refused.value.exit_code == 2 and "\n" not in str(refused.value)
    finally:
        distributed.destroy_process_group()


# --- hooks behind a gradient: inside of backward() it is this member's own

def steps_inside(parameter):
    rule = torch.optim.SGD([parameter], lr=0.1)
    rule.step()
    rule.zero_grad()


def steps_past_the_counter(parameter):
    parameter.data.sub_(parameter.grad, alpha=0.1)
    parameter.grad = None


def by_hooks(hook, steps):
    """Exit code and line of training in which hooks step two parameters, with or without the step of the optimizer that is wrapped."""
    net, optimizer = tiny.wrap(tiny.model())
    for parameter in net.module[2].parameters():
        parameter.register_post_accumulate_grad_hook(hook)
    try:
        for step in range(2):
            one_loss(net, step, shoal.rank())
            if steps:
                optimizer.step()
    except shoal.Error as error:
        return error.exit_code, str(error)


@pytest.mark.parametrize("hook", [steps_inside, steps_past_the_counter])
@pytest.mark.parametrize("steps", [True, False])
def test_an_optimizer_inside_of_backward_is_refused(pool, hook, steps):
    for code, line in pool(MEMBERS).run(by_hooks, hook, steps):
        assert code == 2 and "\n" not in line
        assert line.startswith("parameter 2.") and "a hook has stepped it inside of backward(), where .grad is this member's own" in line


def halves(parameter):
    parameter.grad = parameter.grad / 2


def drops(parameter):
    parameter.grad = None


def trained_with(hook):
    net = tiny.model()
    for parameter in net[2].parameters():
        parameter.register_post_accumulate_grad_hook(hook)
    return parameters(trained(net, one_loss))


@pytest.mark.parametrize("hook", [halves, drops])
def test_what_a_hook_makes_of_a_gradient_is_exchanged(pool, hook):
    def backward(net, step, rank):
        one_loss(net, step, rank)
        for parameter in net[2].parameters():
            hook(parameter)

    for values in pool(MEMBERS).run(trained_with, hook):
        assert tiny.equal(values, expected_of(tiny.model(), backward))


# --- autograd on another thread than the script's

def on_a_thread(net, step, rank):
    with ThreadPoolExecutor(1) as thread:
        if step % 2:
            return thread.submit(one_loss, net, step, rank).result()
        loss = tiny.loss(net, step, rank)
        thread.submit(loss.backward).result()


def threaded(_=None):
    return parameters(trained(tiny.model(), on_a_thread))


def test_a_backward_pass_on_a_thread_of_its_own_is_exchanged(pool):
    for values in pool(MEMBERS).run(threaded):
        assert tiny.equal(values, expected_of(tiny.model(), one_loss))


# --- `p.data =`: the accumulator that is hooked stays, or the change is refused

def lays_elsewhere(net, optimizer, step):
    for p in net.parameters():
        p.data = p.data.clone()


def moved(_=None):
    return parameters(trained(tiny.model(), one_loss, lays_elsewhere))


def test_other_memory_behind_a_parameter_is_stepped_and_exchanged_as_ever(pool):
    for values in pool(MEMBERS).run(moved):
        assert tiny.equal(values, expected_of(tiny.model(), one_loss, lays_elsewhere))


def becomes_double(_=None):
    """Another type: autograd gives it another accumulator, which nobody has hooked."""
    net, optimizer = tiny.wrap(tiny.model())
    one_loss(net, 0, shoal.rank())
    optimizer.step()
    for p in net.module[4].parameters():
        p.data = p.data.double()
    try:
        net.module[4](net.module[:4](tiny.data(1, shoal.rank())[0]).double()).sum().backward()
        optimizer.step()
    except shoal.Error as error:
        return error.exit_code, str(error)


def test_another_type_behind_a_parameter_is_refused(pool):
    for code, line in pool(MEMBERS).run(becomes_double):
        assert code == 2 and line.startswith("parameter 4.") and line.endswith("data_parallel())"), line


# --- gradients that no backward pass has stored

def by_hand(when):
    """Before the plan is made, or while parameters wait for their steps. Exit code and line, and the parameters before and after."""
    net, optimizer = late(tiny.model(), None)
    for step in range(when):
        optimizer.zero_grad()
        one_loss(net, step, shoal.rank())
        optimizer.step()
    optimizer.zero_grad()
    gradients = torch.autograd.grad(tiny.loss(net, when, shoal.rank()), list(net.parameters()))
    before = parameters(net)
    for parameter, gradient in zip(net.parameters(), gradients):
        parameter.grad = gradient
    try:
        optimizer.step()
    except shoal.Error as error:
        return error.exit_code, str(error), tiny.equal(before, parameters(net))


@pytest.mark.parametrize("when", [1, STEPS - 1])
def test_gradients_that_only_this_member_knows_are_refused(pool, when):
    for code, line, unchanged in pool(MEMBERS).run(by_hand, when):
        assert code == 2 and unchanged
        assert line.startswith("parameter 0.weight: the script has set its .grad and no backward() came: ") and "torch.autograd.grad()" in line


def by_backward(net, step, rank):
    """As that line says: what autograd.grad() gives goes through a backward pass, and is the mean."""
    gradients = torch.autograd.grad(tiny.loss(net, step, rank), list(net.parameters()))
    sum((p * g).sum() for p, g in zip(net.parameters(), gradients)).backward()


def exchanged(_=None):
    return parameters(trained(tiny.model(), by_backward))


def test_what_the_line_says_exchanges_them(pool):
    for values in pool(MEMBERS).run(exchanged):
        assert tiny.equal(values, expected_of(tiny.model(), one_loss))


def replaces(net, step, rank):
    """The script's own value for a gradient, after the mean has come."""
    net._steps._core.here = range(6)  # what is read is here
    one_loss(net, step, rank)
    for p in net.parameters():
        p.grad = p.grad.sign()


def replaced(_=None):
    return parameters(trained(tiny.model(), replaces))


def test_a_gradient_that_is_made_of_the_mean_is_the_scripts_own_affair(pool):
    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in range(STEPS):
        means = tiny.mean_in_rank_order([tiny.gradients(net, lambda n, r=r: one_loss(n, step, r)) for r in RANKS])
        for parameter, mean in zip(net.parameters(), means):
            parameter.grad = mean.sign()
        optimizer.step()
    for values in pool(MEMBERS).run(replaced):
        assert tiny.equal(values, parameters(net))


# --- what needs all means under order by priority: no parameter waits, and the report says why

def clips(net, optimizer, step):
    one_loss(net, step, shoal.rank())
    nn.utils.clip_grad_norm_(net.parameters(), 0.05)
    optimizer.step()


def scales(net, optimizer, step):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(tiny.loss(net, step, shoal.rank())).backward()
    scaler.step(optimizer)
    scaler.update()


def closes(net, optimizer, step):
    def closure():
        optimizer.zero_grad()
        loss = tiny.loss(net, step, shoal.rank())
        loss.backward()
        return loss

    optimizer.step(closure)


def closes_late(net, optimizer, step):
    loss = tiny.loss(net, step, shoal.rank())
    loss.backward()
    optimizer.step(lambda: loss)


def told(form, kind):
    """What the report says of this form, and whether a parameter ever waited."""
    notes, note = [], shoal._C.note
    shoal._C.note, shoal.pending._told = lambda line: notes.append(line), set()
    try:
        inner = tiny.model()
        optimizer = torch.optim.LBFGS(inner.parameters(), lr=0.1, max_iter=1) if kind == "lbfgs" else OPTIMIZERS[kind](inner)
        net, optimizer = late(inner, optimizer)
        net._steps._core.here = [] if form is trains else range(6)  # what was read is here
        waited = False
        for step in range(STEPS):
            optimizer.zero_grad()
            form(net, optimizer, step)
            waited = waited or net._steps.waiting
        net.flush()
    finally:
        shoal._C.note = note
    return notes, waited


def trains(net, optimizer, step):
    one_loss(net, step, shoal.rank())
    optimizer.step()


# --- the returned model thrown away

def steps_without_its_model(_=None):
    net = tiny.model()
    optimizer = tiny.sgd(net)
    shoal.data_parallel(net, optimizer)
    one_loss(net, 0, shoal.rank())
    before = [p.detach().clone() for p in net.parameters()]
    try:
        optimizer.step()
    except shoal.Error as error:
        return error.exit_code, str(error), tiny.equal([p.detach() for p in net.parameters()], before)


def test_an_optimizer_whose_model_is_gone_does_not_step(pool):
    for code, line, unchanged in pool(MEMBERS).run(steps_without_its_model):
        assert code == 2 and unchanged and line.startswith("optimizer.step(): the model that data_parallel() returned"), line


READ = "barrier: all means were awaited before step() because {} read .grad"


@pytest.mark.parametrize("form, kind, expected", [
    (trains, "sgd", []),
    (clips, "sgd", [READ.format("clip_grad_norm_")]),
    (scales, "sgd", [READ.format("GradScaler.step")]),
    (closes, "sgd", [READ.format("SGD.step")]),
    (closes, "lbfgs", [READ.format("LBFGS.step")]),
    (closes_late, "sgd", ["barrier: all means are awaited in step() because the optimizer's step is given a closure"]),
])
def test_what_awaits_all_means_is_told(pool, form, kind, expected):
    for notes, waited in pool(MEMBERS).run(told, form, kind):
        assert notes == expected
        assert waited == (form is trains)


# --- who ends first

ENDS = """
import os, sys
import torch, shoal, tiny
from torch import distributed
torch.set_num_threads(1)
first, pipe = int(sys.argv[1]), sys.argv[2]
net, optimizer = tiny.wrap(tiny.model())
tiny.step(net, optimizer, 0, shoal.rank())
net.flush()
shoal.init_process_group()
distributed.all_reduce(torch.ones(1))
if shoal.rank() == first:
    held = os.open(pipe, os.O_WRONLY)  # until this process is gone
else:
    assert os.read(os.open(pipe, os.O_RDONLY), 1) == b""
    tiny.loss(net.eval(), 1, 0).item(), net.state_dict(), optimizer.state_dict()
"""


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_who_has_more_to_do_goes_on_when_the_other_has_ended(tmp_path, first):
    """Torchrun's variables by hand: rank 0 has the store. Neither does its end end the other, nor does the other's, which then is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    at = variables(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), SHOAL_SECRET="hush",
                   PYTHONPATH=environment()["PYTHONPATH"])
    command = [sys.executable, "-c", ENDS, str(first), str(tmp_path / "pipe")]
    members = [subprocess.Popen(command, env={**at, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE, text=True) for rank in RANKS]
    said = [member.communicate(timeout=100)[1] for member in members]
    assert [(member.returncode, line) for member, line in zip(members, said)] == [(0, "")] * MEMBERS
