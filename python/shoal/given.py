"""What data_parallel() is given, looked at before anything is exchanged: refusals in one line, and what members compare."""

from pathlib import Path

import torch

from . import _C, around_steps
from .errors import Error, mistake

_EXCHANGE_THEMSELVES = "DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule"


def check(module, optimizer, plan) -> None:
    where = "data_parallel()"
    if not isinstance(module, torch.nn.Module):
        raise mistake(where, f"the model is a {type(module).__name__}", "give it a torch.nn.Module")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise mistake(where, f"the optimizer is a {type(optimizer).__name__}", "give it a torch.optim.Optimizer")
    if not isinstance(plan, str):
        raise mistake(where, f"the plan is a {type(plan).__name__}", 'give it a word such as "auto" or "wfbp", or the path of a plan.json')
    for part in module.modules():
        for kind in type(part).__mro__:
            if kind.__name__ in _EXCHANGE_THEMSELVES and kind.__module__.startswith("torch."):
                raise mistake(where, f"the model has a {kind.__name__}, which exchanges gradients itself",
                              "give it the plain module, or leave data_parallel() out and let that one use Shoal's process group")
    for name, parameter in module.named_parameters():
        if any(kind.__name__ == "DTensor" and kind.__module__.startswith("torch.") for kind in type(parameter).__mro__):
            raise mistake(f"parameter {name}", "it is a DTensor, of which each member may hold another part",
                          "give data_parallel() the plain module, or leave it out and let the model's mesh use Shoal's process group")
    own = {id(parameter) for parameter in module.parameters()}
    if own and not any(id(parameter) in own for group in optimizer.param_groups for parameter in group["params"]):
        raise mistake(where, "the optimizer steps no parameter of this model", "make it from model.parameters()")


def refuse_lost_model() -> None:
    """In the step of an optimizer whose model is gone: nobody exchanges its gradients any more."""
    raise mistake("optimizer.step()", "the model that data_parallel() returned for this optimizer is gone: each member would step by its own gradients",
                  "keep it and call it: model, optimizer = shoal.data_parallel(model, optimizer)")


def hooks_of_the_script(optimizer, pre: int, post: int) -> bool:
    """All parameters are to be stepped whole and at once: hooks behind ours, of number `pre`, would see gradients that are not yet means, or strips; those
    before ours, `post`, parameters that are not yet stepped; and any hook, where a step calls another one, in the middle of ours."""
    inside = around_steps.has_inner_ones(optimizer)
    behind = any((inside or number > pre) and not _is_own(hook) for number, hook in optimizer._optimizer_step_pre_hooks.items())
    before = any((inside or number < post) and not _is_own(hook) for number, hook in optimizer._optimizer_step_post_hooks.items())
    return behind or before


def _is_own(hook) -> bool:
    return str(getattr(hook, "__module__", "")).startswith("shoal.")


def trained_parameters(module: torch.nn.Module):
    trained = []
    for name, parameter in module.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedTensorMixin):
            raise mistake(f"parameter {name}", "it has no shape yet", "run the model once before data_parallel()")
        if parameter.is_meta:
            raise mistake(f"parameter {name}", "it is on the meta device and has no values", 'call module.to_empty(device="cpu") and set them before data_parallel()')
        if parameter.requires_grad and parameter.numel() > 0:
            trained.append((name, parameter))
    if not trained:
        raise mistake("data_parallel()", "the model has no parameter that requires a gradient")
    return trained


def check_momentum(optimizer, plan: str, saved: str | None, trained) -> None:
    """No parameter has momentum twice."""
    have = dict(zip((id(parameter) for _, parameter in trained), _C.have_momentum(plan, saved, [name for name, _ in trained])))
    for group in optimizer.param_groups:
        if group.get("momentum", 0) and any(have.get(id(parameter)) for parameter in group["params"]):
            raise mistake("data_parallel()", "the plan's way has momentum and the optimizer, too", "make the optimizer with momentum=0 for what goes by it")


def tables(module: torch.nn.Module, trained) -> dict[int, bool]:
    """Parameters of which a pass touches few rows, by number, and whether autograd makes their gradients sparse."""
    number = {id(parameter): i for i, (_, parameter) in enumerate(trained)}
    kinds = torch.nn.Embedding, torch.nn.EmbeddingBag
    return {number[id(part.weight)]: part.sparse for part in module.modules() if isinstance(part, kinds) and id(part.weight) in number}


def code(module, optimizer) -> str:
    """What members compare before they train together: a line for each thing that must be equal."""
    groups = optimizer.param_groups
    lines = [f"{type(module).__name__}, {type(optimizer).__name__} with groups of {[len(group['params']) for group in groups]}"]
    for i, group in enumerate(groups):
        which = f" of parameter group {i}" if len(groups) > 1 else ""
        lines += [f"{name}{which} {value}" for name in sorted(group) if (value := setting(group[name])) is not None]
    return "\n".join(lines)


def setting(value) -> str | None:
    """A hyper-parameter as text; None for what is none, like the parameters themselves and their names."""
    if isinstance(value, torch.Tensor) and value.numel() == 1 and not isinstance(value, torch.nn.Parameter):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return str(value)
    if isinstance(value, tuple):
        parts = [setting(part) for part in value]
        return None if None in parts else f"({', '.join(parts)})"
    return None


def read_plan(choice: str, where: str) -> str | None:
    plan = _C.plan_file(choice, where)
    if not plan:
        return None
    try:
        return Path(plan).read_text()
    except OSError as error:
        raise Error(f"{plan}: cannot read the plan: {error.strerror}", "invalid_argument", 2) from None
    except UnicodeDecodeError:
        raise Error(f"{plan}: is not text (is this a plan.json of a Shoal run?)", "invalid_argument", 2) from None
