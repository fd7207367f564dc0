"""Parameters that servers step: a parameter server for PyTorch models (docs/ways.md, Served).

Parameters are rows of tables, one table for each group of the optimizer. A step hands gradients over and ticks; the forward pass begins with
rows as old as the consistency lets them be. Servers hold the optimizer's state, each for its rows.
"""

import itertools
import math

import numpy as np
import torch

from . import _C, around_steps, recording, served_state, session, table
from .adaptive_revision import AdaptiveRevision
from .errors import mistake
from .wrapped import AtSteps, has_closure, weak

_tables = itertools.count()  # all members make theirs in the same order
_WIDTH = 1024  # of a row: a server's share is many of them, and a message some dozens


def is_known(parameter: torch.nn.Parameter) -> bool:
    return any(parameter is known for user in session.models() if isinstance(user, Served) for group in user._groups for known in group.parameters)


class Served(AtSteps):
    """Stands for `module` in a training loop, as DataParallel does. Parameters are copies of what the servers have; the optimizer's step()
    hands gradients over in place of stepping."""

    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer, trained, consistency: str):
        super().__init__(module)
        self._optimizer = optimizer
        self._groups = [_Group(number, optimizer, trained, consistency) for number in range(len(optimizer.param_groups))]
        self._fresh = True  # what was read is of this clock
        self._set_aside = None
        optimizer.register_state_dict_post_hook(weak(self, "_fill_in_state"))
        optimizer.register_load_state_dict_pre_hook(weak(self, "_take_state"))
        around_steps.register(optimizer, weak(self, "_hand_over"), weak(self, "_after_step"))
        session.add_user(self)
        if consistency.startswith("bsp:"):
            backups = consistency.partition("+")[0].removeprefix("bsp:")
            _C.note(f"not exact: each step goes on without the slowest {backups} of {session.size()} members, whose gradients for it are dropped")
        elif not consistency.startswith("bsp"):
            root = "sqrt " if _by_magnitude(optimizer) else ""
            _C.note(f"not exact: parameters are served {consistency}; each member's gradient is a step, at 1/{root}{session.size()} of the rate")
        if "+" in consistency:
            _C.note(f"not exact: gradients and parameters travel as {consistency.partition('+')[2]}")

    # --- the training loop

    @torch._disable_dynamo
    def _forward_begins(self, args, kwargs) -> None:
        self._looked_at()
        if self._recorded is not None:
            self._recorded.forward_begins(_C.samples_in(args, kwargs))

    @torch._disable_dynamo
    def _looked_at(self) -> None:
        if not self._fresh and self._groups:
            self._read()

    def _read(self) -> None:
        for group in self._groups:
            group.read()
        self._fresh = True

    # --- its state

    def state_dict(self, *args, **kwargs):
        self._looked_at()
        return self.module.state_dict(*args, **kwargs)

    def __deepcopy__(self, memo):
        self._looked_at()
        return super().__deepcopy__(memo)

    def load_state_dict(self, *args, **kwargs):
        """By all members: rank 0's values become everybody's."""
        result = self.module.load_state_dict(*args, **kwargs)
        for group in self._groups:
            group.give_out()
        return result

    def _fill_in_state(self, optimizer, state: dict) -> None:
        """What servers hold stands in optimizer.state_dict() as if the optimizer had it."""
        number = _numbers(optimizer, state)
        for group in self._groups:
            state["state"].update((number[id(p)], of_p) for p, of_p in zip(group.parameters, group.state()))

    def _take_state(self, optimizer, state: dict) -> dict:
        """By all members: rank 0's becomes the servers'."""
        number = _numbers(optimizer, state)
        for group in self._groups:
            group.take_state([state["state"].get(number[id(p)], {}) for p in group.parameters])
        return {**state, "state": {}}

    # --- a step

    def _hand_over(self, optimizer, args, kwargs) -> None:
        if not self._groups:
            return
        if has_closure(args, kwargs):
            raise mistake("optimizer.step(closure)", "servers step once for a gradient, and call no closure", "call backward() yourself, then step()")
        if self._recorded is not None:
            self._recorded.step_begins(optimizer, args, kwargs)
        mine = {id(p) for group in self._groups for p in group.parameters}
        if any(p.grad is not None and p.numel() > 0 and id(p) not in mine for group in optimizer.param_groups for p in group["params"]):
            raise mistake("optimizer", "a parameter has a gradient, and was not trained when the model was wrapped",
                          "wrap it when all that trains is known")
        for group in self._groups:
            group.hand_over()
        self._fresh = False
        self._set_aside = [(p, p.grad) for group in self._groups for p in group.parameters]  # a step without gradients changes nothing
        for parameter, _ in self._set_aside:
            parameter.grad = None

    def _after_step(self, optimizer, args, kwargs) -> None:
        for parameter, gradient in self._set_aside or ():
            parameter.grad = gradient
        self._set_aside = None
        if self._recorded is not None:
            self._recorded.step_ends()
        recording.tick(optimizer)

    def flush(self) -> None:
        """By all members: every gradient is in everybody's parameters, which are alike."""
        table.barrier([group.table for group in self._groups])
        if self._groups:
            self._read()

    def settle(self) -> None:
        """Nothing is under way that anybody waits for."""

    def samples(self, n: float) -> None:
        """Nothing: servers count each member's gradient alike."""

    exchanges = property(lambda self: bool(self._groups), doc="It is trained on several members.")
    plan = None
    passes_signals = False  # each member's steps are its own

    def fit_plan(self) -> None:
        """Nothing: there is no plan to fit."""

    @property
    def dropped(self) -> int:
        """Clocks of this member whose gradients came too late (ps:bsp:K)."""
        return max((group.table.dropped for group in self._groups), default=0)

    def asked(self) -> int:
        """Nothing: no step is one of all members."""
        return 0

    def communication(self) -> tuple[float, float]:
        """Not known of tables."""
        return 0.0, 0.0

    def release(self) -> None:
        self._groups = []


class _Group:
    """One of the optimizer's groups: its parameters in one piece of memory, as rows of one table."""

    def __init__(self, number: int, optimizer: torch.optim.Optimizer, trained, consistency: str):
        group = optimizer.param_groups[number]
        known = {id(p) for _, p in trained}
        self.parameters = [p for p in group["params"] if id(p) in known]
        for name, p in trained:
            if any(p is mine for mine in self.parameters) and (p.dtype != torch.float32 or p.device.type != "cpu"):
                raise mistake(f"parameter {name}", f"plan ps serves float32 on the CPU, not {p.dtype} on {p.device}", "choose another plan")
        self._number, self._optimizer = number, optimizer
        self._steps_each = not consistency.startswith("bsp")  # every member's gradient is one
        self._late_ones = consistency.startswith("bsp:")
        self._told = self._rule()
        count = sum(p.numel() for p in self.parameters)
        self.keys = np.arange(max(1, -(-count // _WIDTH)), dtype=np.uint64)
        self._rows = torch.zeros(len(self.keys), _WIDTH, device="cpu")
        self._gradients = torch.zeros(len(self.keys), _WIDTH, device="cpu")
        self._own = _laid_out(self._rows, self.parameters)
        self._grads = _laid_out(self._gradients, self.parameters)
        for parameter, place in zip(self.parameters, self._own):
            place.copy_(parameter.data)
            parameter.data = place
        self.table = table.Table(f"parameters-{next(_tables)}", _WIDTH, consistency=consistency.partition("+")[0], rule=self._told,
                                 encode=consistency.partition("+")[2] or "none", _among=session.everybody())
        self.give_out()

    def give_out(self) -> None:
        """What rank 0 has becomes everybody's."""
        self.table.barrier()
        if session.rank() == 0:
            self.table.assign(self.keys, self._rows.numpy())
        self.table.barrier()
        self.read()

    def state(self) -> list[dict]:
        return served_state.of_rows(self._told, torch.from_numpy(self.table._core.fetch(self.keys)), _WIDTH, self._places)

    def take_state(self, states: list[dict]) -> None:
        self.table.barrier()
        rows = torch.from_numpy(self.table._core.fetch(self.keys))
        served_state.into_rows(self._told, rows, _WIDTH, self._places, states)  # on all, so that all refuse
        if session.rank() == 0:
            self.table._core.put(self.keys, rows.numpy())
        self.table.barrier()

    def _places(self, rows: torch.Tensor) -> list[torch.Tensor]:
        return _laid_out(rows, self.parameters)

    def read(self) -> None:
        self.table.read(self.keys, out=self._rows.numpy())

    def hand_over(self) -> None:
        rule = self._rule()
        # All say so, for any of them may be the last to have data; but with backups a late member's schedule is behind its clock.
        if rule != self._told and (not self._late_ones or session.rank() == 0):
            self.table.rule(rule)
        self._told = rule
        decay = self._group.get("weight_decay", 0)
        for parameter, place in zip(self.parameters, self._grads):
            if parameter.grad is None:
                if decay or not (self._told.startswith(("adagrad", "adaptive-revision")) or self._told.endswith(":0.0")):
                    raise mistake("a parameter without a gradient", f"servers that step {self._told} would move it",
                                  "choose another plan for this model")
                place.zero_()
            elif parameter.grad.is_sparse:
                place.copy_(parameter.grad.to_dense())
            elif decay:
                torch.add(parameter.grad, parameter.data, alpha=decay, out=place)
            else:
                place.copy_(parameter.grad)
        self.table.add(self.keys, self._gradients.numpy())
        self.table.tick()
        self.table.intend(self.keys)

    @property
    def _group(self) -> dict:
        return self._optimizer.param_groups[self._number]  # another one after optimizer.load_state_dict()

    def _rule(self) -> str:
        """The optimizer's, as a server's. A gradient meets those of the N - 1 other members on its way: where each is a step of its own, SGD's rate is divided by N
        (Zhang et al., "Staleness-aware Async-SGD", IJCAI'16). Where it divides gradients by their magnitude, of which most is noise, and sqrt N times as much
        as in all members' mean, by sqrt N (Malladi et al., "On the SDEs and Scaling Rules for Adaptive Gradient Algorithms", NeurIPS'22)."""
        g = self._group
        kind = type(self._optimizer)
        steps = session.size() if self._steps_each else 1
        rate = float(g["lr"]) / (math.sqrt(steps) if _by_magnitude(self._optimizer) else steps)
        if kind is torch.optim.SGD and not g["nesterov"] and not g["dampening"] and not g["maximize"]:
            return f"sgd:{rate!r}:{float(g['momentum'])!r}"
        if kind is torch.optim.Adam and not g["amsgrad"] and not g["maximize"] and not g.get("decoupled_weight_decay"):
            return f"adam:{rate!r}:{float(g['betas'][0])!r}:{float(g['betas'][1])!r}:{float(g['eps'])!r}"
        if kind is torch.optim.Adagrad and not g["lr_decay"] and not g["initial_accumulator_value"] and not g["maximize"]:
            return f"adagrad:{rate!r}:{float(g['eps'])!r}"
        if kind is AdaptiveRevision:
            return f"adaptive-revision:{rate!r}:{float(g['eps'])!r}"
        raise mistake("optimizer", f"no server steps as this {kind.__name__} does",
                      "SGD with momentum, Adam, Adagrad and shoal.AdaptiveRevision can be served; or choose another plan")


def _by_magnitude(optimizer) -> bool:
    """Of those that servers know: it divides gradients by how large they were."""
    return type(optimizer) is not torch.optim.SGD


def _numbers(optimizer, state: dict) -> dict[int, int]:
    """By which number of state_dict() each parameter goes."""
    if [len(group["params"]) for group in state["param_groups"]] != [len(group["params"]) for group in optimizer.param_groups]:
        raise mistake("optimizer.load_state_dict()", "its parameter groups are others", "it is of another model")
    pairs = zip(optimizer.param_groups, state["param_groups"])
    return {id(p): number for group, saved in pairs for p, number in zip(group["params"], saved["params"])}


def _laid_out(rows: torch.Tensor, parameters) -> list[torch.Tensor]:
    """Views into `rows`, one behind the other, of the parameters' shapes."""
    flat, at, places = rows.view(-1), 0, []
    for parameter in parameters:
        places.append(flat[at : at + parameter.numel()].view(parameter.shape))
        at += parameter.numel()
    return places
