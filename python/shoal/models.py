"""The models of the zoo as ordinary PyTorch modules: shoal.models.lenet(), resnet_50(), char_transformer() and so on.

Each is one description in C++ (shoal/nn/models), from which build() makes a torch.fx.GraphModule of torch.nn layers: its children and
parameters have the description's names, `print(model.code)` shows its forward function. MODELS are the names as `shoal train` takes
them, with dashes; a function has underscores instead and no arguments. To only count, build under `torch.device("meta")`.
"""

import operator
from functools import partial

import torch
import torch.nn.functional as F
from torch import fx, nn

from . import _C

MODELS = tuple(_C.model_names())


def describe(name: str) -> dict:
    """The description: name, source (its paper), inputs (name, shape of one sample, words), layers in the order of the forward pass (name,
    type, arguments, inputs, shape of one sample's output, flops), auxiliary (weights of auxiliary classifiers in the loss), initial,
    parameters (their number) and flops (of one sample's forward pass, 2 for each multiply-add)."""
    return _C.describe(name)


def build(name: str) -> fx.GraphModule:
    """A new model. Its forward takes the description's inputs, each with the batch in front. Images give scores {batch, classes},
    texts {batch, places, words}; a model with auxiliary classifiers gives in training a tuple, its own scores first."""
    described = describe(name)
    root, graph = nn.Module(), fx.Graph()
    values = [graph.placeholder(given["name"]) for given in described["inputs"]]
    states = {}  # of LSTMs, by value
    for layer in described["layers"]:
        read = [values[i] for i in layer["inputs"]]
        if layer["type"] == "Add":
            values.append(graph.call_function(operator.add, tuple(read)))
            continue
        if layer["type"] == "Concatenate":
            values.append(graph.call_function(torch.cat, (read, layer["arguments"]["dim"])))
            continue
        _place(root, layer["name"], _make(layer, described["initial"]))
        if layer["type"] == "LSTM":
            read[1:] = [graph.call_function(operator.getitem, (states[i], 1)) for i in layer["inputs"][1:]]
            states[len(values)] = both = graph.call_module(layer["name"], tuple(read))
            values.append(graph.call_function(operator.getitem, (both, 0)))
            continue
        if layer["type"] == "FedDecoder":
            read.append(graph.call_function(operator.getitem, (states[layer["inputs"][1]], 1)))
        values.append(graph.call_module(layer["name"], tuple(read)))
    graph.output(values[-1])
    return fx.GraphModule(root, graph, class_name="".join(part.capitalize() for part in name.split("-")))


def _make(layer: dict, initial: str) -> nn.Module:
    made = _OWN.get(layer["type"]) or getattr(nn, layer["type"])
    module = made(**layer["arguments"])
    with torch.no_grad():
        if initial == "he" and isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif initial == "he" and isinstance(module, nn.Linear):
            module.weight.normal_(0, 0.01)
        elif initial == "small" and isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.normal_(0, 0.02)
        if initial != "layers" and isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            module.bias.zero_()
    return module


def _place(root: nn.Module, path: str, module: nn.Module) -> None:
    *parents, last = path.split(".")
    for parent in parents:
        if parent not in root._modules:
            root.add_module(parent, nn.Module())
        root = root._modules[parent]
    root.add_module(last, module)


class Position(nn.Module):
    """Adds a learned vector to each place of {batch, places, width}."""

    def __init__(self, places: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(places, width).normal_(0, 0.02))

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class Shortcut(nn.Module):
    """He et al., CVPR 2016, 3.3, option A: every stride-th pixel, with zeros for the channels that are missing."""

    def __init__(self, stride: int, missing: int):
        super().__init__()
        self.stride, self.missing = stride, missing

    def forward(self, x):
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.missing))


class SelfAttention(nn.Module):
    """Vaswani et al. 2017, 3.2: {batch, places, 3 width} of queries, keys and values side by side -> {batch, places, width}."""

    def __init__(self, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal

    def forward(self, qkv):
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in qkv.chunk(3, -1))
        return F.scaled_dot_product_attention(query, key, value, is_causal=self.causal).transpose(1, 2).flatten(2)


class AdditiveAttention(nn.Module):
    """Bahdanau et al. 2015, A.1.2: the values {batch, m, depth}, weighted for each of the queries {batch, n, width}; tokens {batch, m} say
    with 0 which of them are padding."""

    def __init__(self, width: int):
        super().__init__()
        bound = width**-0.5
        self.weight = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, queries, keys, values, tokens):
        scores = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1)) @ self.weight
        return scores.masked_fill((tokens == 0).unsqueeze(1), -1e9).softmax(-1) @ values


class FedDecoder(nn.Module):
    """Luong et al. 2015, 3.3: {batch, n, inputs} -> {batch, n, width}, place by place: what attention made of one is read at the next. `found`
    {batch, m, width} are the encoder's outputs, `state` its last one."""

    def __init__(self, inputs: int, width: int, layers: int):
        super().__init__()
        self.lstm = nn.LSTM(inputs + width, width, layers, batch_first=True)
        self.query = nn.Linear(width, width, bias=False)
        self.attention = AdditiveAttention(width)
        self.combine = nn.Linear(2 * width, width)

    def forward(self, read, found, keys, tokens, state):
        out, all = torch.zeros_like(found[:, :1]), []
        for place in read.split(1, 1):
            decoded, state = self.lstm(torch.cat((place, out), -1), state)
            out = torch.tanh(self.combine(torch.cat((decoded, self.attention(self.query(decoded), keys, found, tokens)), -1)))
            all.append(out)
        return torch.cat(all, 1)


class Heads(nn.Module):
    """In training the scores of all classifiers, the model's own first; else only its own."""

    def forward(self, *scores):
        return scores if self.training else scores[0]


_OWN = {own.__name__: own for own in (Position, Shortcut, SelfAttention, AdditiveAttention, FedDecoder, Heads)}

for _name in MODELS:
    globals()[_name.replace("-", "_")] = partial(build, _name)
__all__ = ["MODELS", "build", "describe", *(name.replace("-", "_") for name in MODELS)]
