"""A member is killed at a drawn moment of iterations that overlap: what another can still read of model and optimizer is that of one whole step.

Method: order of priority, where parameters wait for their steps behind step(); which means count as late there is drawn, too. The victim
counts what it passes (hooks of autograd and of modules, calls of the exchange, bytes sent) and kills itself at a drawn count. Oracle: one process that
plays all members and keeps parameters and state of every step, bit for bit; where a layer goes by its factors, members of whom none is killed, who wait for every step.
"""

import copy
import io
import json
import os
import random
import signal
import socket
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

import shoal
import tiny
from test_training_losses import PATIENCE, answer, begin

MEMBERS, STEPS = 3, 9
OVERLAPPED = range(4, STEPS - 1)  # the plan is made after three steps
# In rank order, also before the plan is made; the wide weight by another way, so that it travels alone.
WHOLE, BY_FACTORS = "p3,*=direct,2.weight=chain", "p3,*=direct,2.weight=factors"
NO_COUNT = 1 << 30
KILLS = int(os.environ.get("SHOAL_KILLS", "2"))  # of each kind


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 400), nn.Tanh(), nn.Linear(400, 300), nn.Tanh(), nn.Linear(300, 3))


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=1e-2)


class Moments(tiny.Late):
    """A core whose calls by what steps parameters are moments: before and behind each."""

    def __init__(self, core, passes):
        super().__init__(core)
        self._passes = passes

    def __getattr__(self, name):
        value = getattr(self._core, name)
        if not callable(value):
            return value

        def call(*arguments):
            self._passes()
            result = value(*arguments)
            self._passes()
            return result

        return call


class Death:
    """Of this process, after so many moments of a step: at the last one if there are fewer."""

    def __init__(self, step, moments):
        self.step, self.left, self.now = step, moments, -1

    def passes(self, *_):
        if self.now == self.step:
            self.left -= 1
        if self.left < 0 or self.now > self.step:
            os.kill(os.getpid(), signal.SIGKILL)

    def in_bytes(self, share):
        """After this share of what a step sends, wherever its caller is meanwhile."""
        links = shoal.session.current().links
        began = sum(link["sent"] for link in links())
        bound = began + share * 2 * (MEMBERS - 1) / MEMBERS * 4 * sum(p.numel() for p in model().parameters())

        def watch():
            while sum(link["sent"] for link in links()) < bound and self.now == self.step:
                time.sleep(0)
            self.left = -1
            self.passes()

        threading.Thread(target=watch, daemon=True).start()

    def behind(self, folder, *_):
        """When all others are back from step(): nothing more of this member's leaves before."""
        patient = time.monotonic() + PATIENCE
        while self.now == self.step and len(os.listdir(folder)) < MEMBERS - 1 and time.monotonic() < patient:
            time.sleep(0.001)
        if self.now == self.step:
            self.left = -1
            self.passes()


# --- ways to read a parameter, or all of them: each gives the values or raises

READERS = [
    lambda net: [lambda p=p: p.detach().clone() for p in net.parameters()],
    lambda net: [lambda p=p: p.data for p in net.parameters()],
    lambda net: [lambda p=p: torch.tensor(p.tolist()) for p in net.parameters()],
    lambda net: [lambda name=name: net.module.state_dict()[name] for name, _ in net.module.named_parameters()],
    lambda net: [lambda p=p: copy.deepcopy(p).detach() for p in net.parameters()],
    lambda net: [lambda p=p: through_a_file(p) for p in net.parameters()],
]


def through_a_file(parameter):
    file = io.BytesIO()
    torch.save(parameter, file)
    file.seek(0)
    return torch.load(file).detach()


def bits(tensors):
    return b"".join(t.detach().numpy().tobytes() for t in tensors)


def of_state(optimizer, parameter):
    return bits(optimizer.state[parameter][name] for name in ("step", "exp_avg", "exp_avg_sq"))


def read(look):
    try:
        return look()
    except shoal.PeerLost:
        return None


def train(plan, seed, victim, step, moments, share=None, layer=None, folder=None, arrive=()):
    """Steps taken, whether the loss came inside of one, and what is read afterwards of parameters and of their state: bytes, or None where that raises."""
    inner = model()
    net, optimizer = tiny.wrap(inner, adam(inner), plan=plan)
    death = Death(step, moments) if shoal.rank() == victim else None
    net._steps._core = Moments(net._core, death.passes) if death else tiny.Late(net._core)
    if death:
        watched = [part for number, part in enumerate(inner) if plan != BY_FACTORS or number != 2]  # a hook at its weight would make a whole gradient
        for parameter in (parameter for part in watched for parameter in part.parameters()):
            parameter.register_post_accumulate_grad_hook(death.passes)
        for part in watched:
            part.register_forward_pre_hook(death.passes)
            part.register_forward_hook(death.passes)
        for parameter in inner[layer].parameters() if layer is not None else ():
            parameter.register_post_accumulate_grad_hook(partial(death.behind, folder))
    taken, inside, overlapped = 0, False, False
    draw = random.Random(f"{seed} {shoal.rank()}")
    parameters = list(inner.parameters())
    held = parameters[0].detach() if seed % 2 else None  # who is looked at by something else is awaited in step()
    try:
        for number in range(STEPS):
            net._steps._core.here = [i for i in range(len(parameters)) if draw.random() < 0.5]
            if death:
                death.now = number
                if share is not None and number == step:
                    death.in_bytes(share)
                death.passes()
            optimizer.zero_grad()
            tiny.loss(net, number, shoal.rank()).backward()
            inside = True
            optimizer.step()
            inside, taken = False, taken + 1
            overlapped = overlapped or net._steps.waiting
            if folder is not None and not death and number == step:
                patient = time.monotonic() + PATIENCE
                while not set(arrive) <= set(net._core.arrived()) and time.monotonic() < patient:
                    time.sleep(0.001)
                (Path(folder) / str(shoal.rank())).touch()
    except shoal.PeerLost:
        pass
    del held
    looks = READERS[seed % len(READERS)](net)
    order = draw.sample(range(len(looks)), len(looks))
    values = {i: read(lambda i=i: bits([looks[i]()])) for i in order}
    states = [read(lambda p=p: of_state(optimizer, p)) for p in parameters]
    again = [read(lambda look=look: bits([look()])) for look in looks]
    whole = [len(group["params"]) for group in optimizer.param_groups] == [len(parameters)]
    return taken, inside, overlapped, whole, [values[i] for i in range(len(looks))], states, again


def played():
    """Bits of each parameter and of its state after each step, by one process."""
    net = model()
    optimizer = adam(net)
    course = [([bits([p]) for p in net.parameters()], [b""] * 6)]
    for step in range(STEPS):
        tiny.oracle_step(net, optimizer, [lambda n, r=r: tiny.loss(n, step, r).backward() for r in range(MEMBERS)])
        course.append(([bits([p]) for p in net.parameters()], [of_state(optimizer, p) for p in net.parameters()]))
    return course


def undisturbed(plan):
    """The same, of members that wait for all means of a step before they take the next one."""
    inner = model()
    net, optimizer = tiny.wrap(inner, adam(inner), plan=plan)
    course = [([bits([p]) for p in inner.parameters()], [b""] * 6)]
    for step in range(STEPS):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
        net.flush()
        course.append(([bits([p]) for p in inner.parameters()], [of_state(optimizer, p) for p in inner.parameters()]))
    assert "factors" in [unit["way"] for unit in json.loads(net.plan)["units"]]
    return course


@pytest.fixture(scope="module")
def course():
    return answer(begin(played))


@pytest.fixture(scope="module")
def course_by_factors():
    courses = [answer(member) for member in members(undisturbed, BY_FACTORS)]
    assert courses[1:] == courses[:-1]
    return courses[0]


def members(function, *arguments):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    at = {"WORLD_SIZE": str(MEMBERS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "SHOAL_SECRET": "only here"}
    return [begin(function, *arguments, variables={**at, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(MEMBERS)]


def survivors_of(plan, seed, victim, *death):
    started = members(train, plan, seed, victim, *death)
    told = [answer(member) for rank, member in enumerate(started) if rank != victim]
    started[victim][0].join(PATIENCE)
    assert started[victim][0].exitcode == -signal.SIGKILL
    return told


def expect_one_step(told, course):
    """What can be read is of one step, that of the last step() that was called or, if the loss came in it, of the one before. Which parameters can."""
    taken, inside, overlapped, whole, values, states, again = told
    assert overlapped and whole
    fits = [step for step in range(taken, taken + 1 + inside)
            if all(got in (None, expected) for got, expected in zip(values, course[step][0])) and
            all(got in (None, expected) for got, expected in zip(states, course[step][1]))]
    assert fits, f"after {taken} steps ({inside=}) what can be read is of no one step"
    assert again == values, "another look sees something else"
    return [number for number, value in enumerate(values) if value is not None]


def survivors_read(seed, course, *death, plan=WHOLE):
    return [expect_one_step(told, course) for told in survivors_of(plan, seed, seed % MEMBERS, *death)]


@pytest.mark.parametrize("seed", range(KILLS))
def test_at_any_call_of_hooks_and_exchange(seed, course):
    draw = random.Random(seed)
    survivors_read(seed, course, draw.choice(OVERLAPPED), draw.randrange(50))


@pytest.mark.parametrize("seed", range(KILLS))
def test_at_any_byte_that_it_sends(seed, course):
    draw = random.Random(100 + seed)
    survivors_read(seed, course, draw.choice(OVERLAPPED), NO_COUNT, draw.random())


@pytest.mark.parametrize("seed", range(KILLS))
def test_where_a_layer_goes_by_its_factors(seed, course_by_factors):
    draw = random.Random(200 + seed)
    where = (draw.randrange(50),) if seed % 2 else (NO_COUNT, 0.1 * draw.random())  # so much of whole gradients' bytes are factors
    survivors_read(seed, course_by_factors, draw.choice(OVERLAPPED), *where, plan=BY_FACTORS)


@pytest.mark.parametrize("layer, readable", [(4, []), (0, [2])])
def test_what_waits_for_a_lost_gradient_cannot_be_read(layer, readable, course, tmp_path):
    """It dies in a layer's backward pass, when the others have returned from step(): the last layer's, before anything has left; the first one's, when
    the wide weight between has, which travels alone."""
    assert survivors_read(2, course, 5, NO_COUNT, None, layer, str(tmp_path), readable) == [readable] * 2
