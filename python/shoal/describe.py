"""python -m shoal.describe package.module:factory: a model as data, for `shoal plan` (docs/plans.md): its layers in forward order, as JSON.

The factory takes nothing and returns a module, or (module, arguments): what its forward takes for a batch of one sample. Nothing is
computed: all of it runs on the meta device, where tensors have shapes only.
"""

import contextlib
import importlib
import json
import os
import sys

import torch
from torch.utils.flop_counter import FlopCounterMode

from .errors import mistake
from .train.flags import Parser

_KINDS = {"Linear": "fc", "Embedding": "embedding", "EmbeddingBag": "embedding", "Conv1d": "conv", "Conv2d": "conv", "Conv3d": "conv"}
_TYPES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}


def describe(name: str, module: torch.nn.Module, sample: tuple) -> dict:
    """`sample`: arguments of forward for a batch of one. Counts are those of one sample; a fully connected layer's rows are what its product has."""
    seen: list[_Layer] = []
    by_module: dict[int, _Layer] = {}
    told = 0  # operations that a layer has been given: what runs inside of another layer is not that one's, too
    counter = FlopCounterMode(display=False)

    def begins(path, part):
        def hook(_, arguments):
            layer = by_module.get(id(part))
            if layer is None:
                layer = by_module[id(part)] = _Layer(path, part)
                seen.append(layer)
            layer.began = counter.get_total_flops() - told
            layer.take(arguments)

        return hook

    def ends(part):
        def hook(_, __, output):
            nonlocal told
            layer = by_module[id(part)]
            flops = counter.get_total_flops() - told - layer.began
            told += flops
            layer.end(output, flops)

        return hook

    hooks = []
    for path, part in module.named_modules():
        if not any(part.children()) or part._parameters:
            hooks += [part.register_forward_pre_hook(begins(path, part)), part.register_forward_hook(ends(part))]
    try:
        with torch.no_grad(), counter:
            module(*sample)
    finally:
        for hook in hooks:
            hook.remove()
    _give_parameters(module, seen)
    rest = counter.get_total_flops() - told
    layers = [layer.as_data() for layer in seen if layer.parameters or layer.flops > 0]
    if rest > 0:  # products outside of any layer, such as attention by a function
        layers.append({"name": "outside of layers", "kind": "other", "parameters": [], "forward_flops": rest})
    return {"version": 1, "name": name, "layers": layers}


class _Layer:
    """A module that computes by itself. Called several times, it adds up."""

    def __init__(self, path: str, module: torch.nn.Module):
        self.path, self.module = path, module
        self.parameters: list[tuple[str, torch.nn.Parameter]] = []
        self.flops = self.inputs = self.outputs = self.began = 0

    def take(self, arguments) -> None:
        self.inputs += sum(a.numel() for a in arguments if isinstance(a, torch.Tensor))

    def end(self, output, flops: int) -> None:
        self.flops += flops
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        self.outputs += sum(o.numel() for o in outputs if isinstance(o, torch.Tensor))

    def as_data(self) -> dict:
        kind = _KINDS.get(type(self.module).__name__, "other")
        data = {"name": self.path or type(self.module).__name__, "kind": kind, "forward_flops": self.flops, "inputs": self.inputs,
                "outputs": self.outputs}
        if kind in ("fc", "embedding"):
            data["rows"] = self.outputs // (self.module.out_features if kind == "fc" else self.module.embedding_dim)
        data["parameters"] = [{"name": name, "count": p.numel(), "type": _TYPES.get(p.dtype, "f32")} for name, p in self.parameters]
        return data


def _give_parameters(module: torch.nn.Module, layers: list[_Layer]) -> None:
    """Each trained parameter to the layer that uses it first; one that no layer owns to one of its own, at the beginning."""
    names = {id(p): name for name, p in module.named_parameters() if p.requires_grad and p.numel() > 0}
    free = dict(names)
    for layer in layers:
        for own, parameter in layer.module.named_parameters(recurse=not layer.module._parameters or not any(layer.module.children())):
            if free.pop(id(parameter), None):
                layer.parameters.append((names[id(parameter)], parameter))
    by_id = {id(p): p for p in module.parameters()}
    for key, name in reversed(free.items()):
        layers.insert(0, _Unowned(name, by_id[key]))


class _Unowned(_Layer):
    def __init__(self, name, parameter):
        super().__init__(name, torch.nn.Identity())
        self.parameters = [(name, parameter)]


def _find(name: str):
    """The factory of a model."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise mistake(name or "MODEL", "names no factory", "package.module:factory")
    try:
        found = importlib.import_module(module)
    except BaseException as error:  # whatever the module does when it is run, such as ending this process
        raise mistake(name, f"cannot be imported: {_in_one_line(error)}") from None
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise mistake(name, f"{module} has no function {attribute}", "package.module:factory")
    return found


def _in_one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _made(name: str, shape: list[int] | None):
    factory = _find(name)
    try:
        made = factory()
    except BaseException as error:  # also one that would end this process
        raise mistake(name, f"raises {_in_one_line(error)}") from None
    module, sample = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise mistake(name, f"returns a {type(module).__name__}, not a torch.nn.Module")
    if shape is not None:
        sample = (torch.empty(1, *shape),)
    if sample is None:
        raise mistake(name, "what is one sample?", "--sample 3,224,224, or a factory that returns (module, (tensor,)) for a batch of one")
    return module, sample if isinstance(sample, tuple) else (sample,)


def main() -> None:
    parser = Parser(prog="python -m shoal.describe")
    parser.add_argument("model")
    parser.add_argument("--sample", help="shape of one sample, as in 3,224,224")
    arguments = parser.parse_args()
    shape = None
    if arguments.sample:
        try:
            shape = [int(n) for n in arguments.sample.split(",")]
        except ValueError:
            raise mistake("--sample", f"{arguments.sample!r} is no shape", "numbers with commas, as in 3,224,224") from None
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a factory prints is not the answer
    with contextlib.redirect_stdout(sys.stderr), torch.device("meta"):
        module, sample = _made(arguments.model, shape)
        try:
            data = describe(arguments.model, module, sample)
        except Exception as error:  # whatever it is, the user's model raised it
            raise mistake(arguments.model, f"its forward pass on one sample fails with {_in_one_line(error)}") from None
    with answer:
        print(json.dumps(data), file=answer)


if __name__ == "__main__":
    main()
