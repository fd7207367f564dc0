"""What a checkpoint holds, as a tree of plain values with the tensors beside it, and how it comes back into model and optimizer.

The tree is JSON: dicts, lists, numbers, text. {"$tensor": name} stands for a tensor, {"$tuple": [...]} for a tuple and
{"$pairs": [[key, value], ...]} for a dict whose keys are not all text. Model and optimizer are checked before either is changed.
"""

import torch

from . import random_numbers, session
from .errors import Error, mistake
from .seldom import LocalSteps
from .served import Served


def flatten(name: str, value, tensors: dict[str, torch.Tensor]):
    """The tree of `value`; its tensors go into `tensors`, named after where they are."""
    if isinstance(value, torch.Tensor):
        while name in tensors:
            name += "_"
        tensors[name] = value.detach()
        return {"$tensor": name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: flatten(f"{name}.{key}", part, tensors) for key, part in value.items()}
        return {"$pairs": [[flatten(name, key, tensors), flatten(f"{name}.{key}", part, tensors)] for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        parts = [flatten(f"{name}.{i}", part, tensors) for i, part in enumerate(value)]
        return parts if isinstance(value, list) else {"$tuple": parts}
    raise mistake(f"checkpoint: {name}", f"a {type(value).__name__} cannot be saved", "tensors, numbers, text, lists and dicts can")


def unflatten(tree, tensors: dict[str, torch.Tensor]):
    """The opposite. KeyError: a tensor that is not there."""
    if isinstance(tree, list):
        return [unflatten(part, tensors) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if "$tensor" in tree:
        return tensors[tree["$tensor"]]
    if "$tuple" in tree:
        return tuple(unflatten(tree["$tuple"], tensors))
    if "$pairs" in tree:
        return {unflatten(key, tensors): unflatten(part, tensors) for key, part in tree["$pairs"]}
    return {key: unflatten(part, tensors) for key, part in tree.items()}


def level(model) -> None:
    """By all members, before one of them collects: what servers have is what everybody has."""
    if isinstance(model, Served):
        model.flush()


def collect(model, optimizer, state: dict) -> dict:
    """Everything that all members have alike."""
    everything = {"model": dict(_values_alike(model)), "state": state}
    if optimizer is not None:
        everything["optimizer"] = optimizer.state_dict()
        everything["optimizer_class"] = type(optimizer).__name__
    core = getattr(model, "_core", None)  # of a DataParallel on several members: how its means are made
    if core is not None:
        everything["exchange"] = {"iterations": core.iterations_taken, "plan": core.plan() if core.plan_is_final else None}
    if _takes_local_steps(model):
        everything["rounds"], _ = model.progress()
    return everything


def _takes_local_steps(model) -> bool:
    return isinstance(model, LocalSteps) and model.exchanges


def _values_alike(model) -> dict:
    return model.state_dict_alike() if _takes_local_steps(model) else model.state_dict()


def of_one_member(model) -> str | None:
    """What the names of those tensors begin with that members have each for itself, though a checkpoint holds one member's for all: moments
    after local steps."""
    return "optimizer." if _takes_local_steps(model) else None


def put_back(everything: dict, own: dict | None, where: str, model, optimizer) -> dict:
    """Model, optimizer and, with `own`, this process's random numbers become what was saved; returns the rest of the state."""
    try:
        _require_same_tensors(where, everything["model"], model.state_dict())
        if optimizer is not None:
            _require_same_optimizer(where, everything, optimizer)
        _require_exchange(everything.get("exchange"))
        _require_rounds(everything.get("rounds"), own)
        if own is not None:
            random_numbers.require_state(own)
        state = everything["state"]
        if optimizer is not None:
            optimizer.load_state_dict(everything["optimizer"])  # it looks at all before it changes anything
    except Error:
        raise
    except Exception as error:  # what lies on a disk may be anything
        raise mistake(where, f"damaged: no save writes this ({type(error).__name__}: {' '.join(str(error).split())})") from None
    model.load_state_dict(everything["model"])
    if own is not None:
        random_numbers.set_state(own)
    return state


def continue_exchange(everything: dict, own: dict | None, model, optimizer) -> None:
    """As many members as then: the means go on with the bits that they would have had there. Servers have no part in this: with them the plan is
    chosen anew."""
    core, then = getattr(model, "_core", None), everything.get("exchange")
    if core is not None and then is not None and core.iterations_taken == 0:
        if not session.everybody().servers:
            core.continue_from(then["iterations"], then["plan"])
        core.put_back((own or {}).get("kept", {}))
    if _takes_local_steps(model) and "rounds" in everything and everything["rounds"].get("choice") == model.choice:
        model.continue_from(everything["rounds"], (own or {}).get("rounds"), optimizer)


def _require_same_tensors(where: str, saved: dict, here: dict) -> None:
    hint = "it is of another model"
    for name, tensor in here.items():
        if name not in saved:
            raise mistake(where, f"it holds no {name}", hint)
        theirs = saved[name]
        if not isinstance(tensor, torch.Tensor):
            continue  # what a module keeps by get_extra_state()
        if not isinstance(theirs, torch.Tensor):
            raise mistake(where, f"{name} is no tensor there", hint)
        if theirs.shape != tensor.shape or theirs.dtype != tensor.dtype:
            raise mistake(where, f"{name} is {_describe(theirs)} there and {_describe(tensor)} in this model", hint)
    for name in saved:
        if name not in here:
            raise mistake(where, f"it holds {name}, which this model has not", hint)


def _require_same_optimizer(where: str, everything: dict, optimizer) -> None:
    if "optimizer" not in everything:
        raise mistake(where, "it holds no optimizer", "load it with the model alone")
    kind = type(optimizer).__name__
    if everything["optimizer_class"] != kind:
        raise mistake(where, f"it holds the state of {everything['optimizer_class']}, the optimizer is {kind}")
    saved = [len(group["params"]) for group in everything["optimizer"]["param_groups"]]
    here = [len(group["params"]) for group in optimizer.param_groups]
    if saved != here:
        raise mistake(where, f"its optimizer has parameter groups of {saved}, this one of {here}")
    if type(optimizer).__module__.startswith("torch.optim.") and not isinstance(optimizer, torch.optim.LBFGS):
        _require_fitting_moments(where, everything["optimizer"], optimizer)


def _require_fitting_moments(where: str, saved: dict, optimizer) -> None:
    """PyTorch's own optimizers (LBFGS apart) keep of each parameter numbers, and tensors of its shape or 1 along some dimensions."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    for number, parameter in zip(numbers, parameters):
        for name, value in saved["state"].get(number, {}).items():
            if not isinstance(value, torch.Tensor) or value.dim() == 0:
                continue
            if value.dim() != parameter.dim() or any(n not in (1, whole) for n, whole in zip(value.shape, parameter.shape)):
                raise mistake(where, f"{name} of the optimizer's parameter {number} is {_describe(value)} there, the parameter {_describe(parameter)}",
                              "it is of another model")


def _require_exchange(then: dict | None) -> None:
    if then is not None and not (isinstance(then["iterations"], int) and isinstance(then["plan"], str | None)):
        raise ValueError("iterations and plan")


def _require_rounds(alike: dict | None, own: dict | None) -> None:
    if alike is None:
        return
    whole = isinstance(alike["synchronised"], int) and isinstance(alike["steps"], int) and isinstance(alike["plan"], str | None)
    values = [*alike["values"].values(), *(own or {}).get("rounds", {"values": {}})["values"].values()]
    if not (whole and all(isinstance(value, torch.Tensor) for value in values)):
        raise ValueError("rounds of local steps")


def _describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


# --- each member's own


def own_state(model) -> dict:
    """What each member has for itself: its random numbers, what it has not yet sent of its gradients, its local steps."""
    core = getattr(model, "_core", None)
    kept = core.kept() if core is not None else {}
    rounds = {"rounds": model.progress()[1]} if _takes_local_steps(model) else {}
    return random_numbers.state() | ({"kept": kept} if kept else {}) | rounds
