"""Embeddings whose rows are in a table that all members share: they may have more rows than any one of them would hold (docs/tables.md, Embeddings).

    words = shoal.Table("words", 64, consistency="bsp", rule="adagrad:0.05", initial=shoal.Initial.normal(0, 0.1))   # all members
    model = Net(shoal.nn.TableEmbedding(words))
    model, optimizer = shoal.data_parallel(model, optimizer)       # dense layers by the optimizer, rows by the table's rule

A forward pass reads the distinct rows of its ids; a backward pass gathers a gradient for each of them; the step hands these to the servers, and
ticks. Threads: one, that of the training loop; ids of other threads and processes (data loaders) are only numbers.
"""

from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F

from . import around_steps, table as tables
from .errors import mistake
from .keys import keys_of

_REFUSED = {
    "max_norm": "rows that are read are not changed",
    "norm_type": "rows that are read are not changed",
    "scale_grad_by_freq": "no member knows how often ids occur in the batches of the others",
    "sparse": "what travels are the rows of a batch, always",
}


def step(module: torch.nn.Module, weight: float = 1.0) -> None:
    """What the embeddings in `module` have gathered since the last step becomes one of the servers', a clock of their tables. data_parallel() calls
    it in optimizer.step(); who does without it calls this after backward(). weight: of this member's gradients in the mean over members, 1 where all
    count alike. Waits as Table.tick() does."""
    layers = _layers(module)
    for layer in layers:
        layer._hand_over(weight)
    for table in _tables(layers):
        table.tick()
    for layer in layers:
        layer._ask_ahead()


def step_with(optimizer: torch.optim.Optimizer, module: torch.nn.Module, weight=lambda: 1.0) -> None:
    """step(module, weight()) after each step of `optimizer`."""
    if _layers(module):
        around_steps.register(optimizer, after=lambda *_: step(module, weight()))


@contextmanager
def out_of_data(module: torch.nn.Module):
    """By all members, each when its data is at an end: it holds nobody back meanwhile, and afterwards all see the same rows."""
    shared = _tables(_layers(module))
    for table in shared:
        table._core.arrive()
    yield
    for table in shared:
        table._core.meet()


def _layers(module: torch.nn.Module) -> list["TableLayer"]:
    return [layer for layer in module.modules() if isinstance(layer, TableLayer)]


def _tables(layers) -> list[tables.Table]:
    return list({id(layer.table): layer.table for layer in layers}.values())


class _Rows(torch.autograd.Function):
    """Rows as a function of a layer's weight, which has none: their gradient goes to `take`, the weight's is as empty as itself."""

    @staticmethod
    def forward(ctx, weight, rows, take):
        ctx.take, ctx.of_weight = take, torch.zeros_like(weight)
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx, gradient):
        if torch.is_grad_enabled():
            raise mistake("backward(create_graph=True)", "the gradients of a table's rows cannot be differentiated",
                          "differentiate by activations instead")
        ctx.take(gradient)
        return ctx.of_weight, None, None


class TableLayer(torch.nn.Module):
    """What embeddings over a table have in common. `weight` has no rows, (0, dim): it has the type and the device of what the layer returns, freezes
    it (requires_grad), and is all of it that state_dict() holds. The rows are the table's: snapshot(), restore() and export() keep them."""

    def __init__(self, table: tables.Table, num_embeddings: int | None = None, padding_idx: int | str | None = None, **others):
        super().__init__()
        where = type(self).__name__
        for option in others:
            raise mistake(where, f"there is no {option}", _REFUSED.get(option, "num_embeddings and padding_idx are its options"))
        if not isinstance(table, tables.Table):
            raise mistake(where, f"its rows are those of a shoal.Table, not of {table!r}",
                          'as in TableEmbedding(shoal.Table("words", 64, rule="adagrad:0.1"))')
        if table.dtype.kind != "f":
            raise mistake(where, f"table {table.name} holds {table.dtype}", "gradients need float32 or float64")
        if table.first_rule == "sum":
            raise mistake(where, f"the servers of table {table.name} sum", 'for gradients give it a rule that steps, as in rule="sgd:0.1"')
        self.table, self.num_embeddings, self.padding_idx = table, num_embeddings, padding_idx
        self._padding = None if padding_idx is None else self._keys(padding_idx)[0]
        self.weight = torch.nn.Parameter(torch.empty(0, table.dim, dtype=getattr(torch, table.dtype.name)))
        self.weight.register_hook(self._pass_ends)
        self._arriving = []  # (keys, gradient) of the backward pass under way
        self._gathered = []  # of those before it, since the last step
        self._ahead = None

    def intend(self, ids) -> None:
        """The next forward pass will have these ids: their rows are asked for now, and again after the step if they are too old by then."""
        self._ahead = np.unique(self._keys(ids))
        self.table.intend(self._ahead)

    def extra_repr(self) -> str:
        options = [f"{self.table.name}, {self.table.dim}, {self.table.first_rule}, {self.table.consistency}"]
        options += [f"{name}={value!r}" for name in ("num_embeddings", "padding_idx") if (value := getattr(self, name)) is not None]
        return ", ".join(options)

    def __deepcopy__(self, memo):
        """A copy reads the same table."""
        copied = type(self)(self.table, **self._options())
        copied.to(self.weight).weight.requires_grad_(self.weight.requires_grad)
        memo[id(self)] = copied.train(self.training)
        return copied

    def __reduce__(self):
        raise mistake(type(self).__name__, "its rows are in a table, not in a pickle", "keep state_dict() and table.snapshot(path)")

    def _options(self) -> dict:
        return {"num_embeddings": self.num_embeddings, "padding_idx": self.padding_idx}

    def _keys(self, ids) -> np.ndarray:
        keys = keys_of(ids.detach().cpu().numpy() if isinstance(ids, torch.Tensor) else ids)
        if self.num_embeddings is not None and keys.size and keys.max() >= self.num_embeddings:
            raise mistake(type(self).__name__, f"id {keys.max()} is not below num_embeddings, {self.num_embeddings}")
        return keys

    @torch._disable_dynamo
    def _read(self, ids) -> tuple[torch.Tensor, torch.Tensor, int | None]:
        """The distinct rows of `ids`, (rows, dim); the place of each id's among them, of the ids' shape; the place of the padding."""
        distinct, places = torch.from_numpy(self._keys(ids).view(np.int64)).unique(return_inverse=True)
        keys = distinct.numpy().view(np.uint64)
        trained = np.ones(len(keys), bool) if self._padding is None else keys != self._padding
        if trained.all():
            rows, padding = torch.from_numpy(self.table.read(keys)), None
        else:
            rows, padding = torch.zeros(len(keys), self.table.dim, dtype=getattr(torch, self.table.dtype.name), device="cpu"), int(trained.argmin())
            keys = keys[trained]
            rows[torch.from_numpy(trained)] = torch.from_numpy(self.table.read(keys))

        def take(gradient):
            self._arriving.append((keys, gradient if padding is None else gradient[torch.from_numpy(trained).to(gradient.device)]))

        rows, places = rows.to(self.weight), places.to(self.weight.device)
        if torch.is_grad_enabled() and self.weight.requires_grad:
            rows = _Rows.apply(self.weight, rows, take)
        return rows, places, padding

    def _pass_ends(self, of_weight: torch.Tensor) -> None:
        """A backward pass has come to the weight, which is behind all rows that it has read."""
        if self.weight.grad is None:  # since zero_grad() the first
            self._gathered = []
        self._gathered += self._arriving
        self._arriving = []

    def _hand_over(self, weight: float) -> None:
        gathered, self._gathered = self._gathered, []
        if self.weight.grad is None:  # zero_grad() dropped them
            return
        for keys, gradient in gathered:
            gradient = gradient.detach().cpu().to(getattr(torch, self.table.dtype.name))
            self.table.add(keys, (gradient if weight == 1 else gradient * weight).numpy())

    def _ask_ahead(self) -> None:
        if self._ahead is not None:
            self.table.intend(self._ahead)
            self._ahead = None


class TableEmbedding(TableLayer):
    """torch.nn.Embedding with the rows of a table.

    ids: integers from 0 to 2**64 - 1, or strings (Table's stable hash), as a tensor, an array or lists; below num_embeddings, if that is said. The
    row of padding_idx, an id, is zeros and never trained. Raises Error for other ids, and what Table.read() does.
    """

    def forward(self, ids) -> torch.Tensor:
        """(*shape of ids, dim)."""
        rows, places, padding = self._read(ids)
        return F.embedding(places, rows, padding)


class TableEmbeddingBag(TableLayer):
    """torch.nn.EmbeddingBag with the rows of a table: the "sum", "mean" or "max" of each bag's; the padding counts in none. Ids: TableEmbedding's."""

    def __init__(self, table: tables.Table, num_embeddings: int | None = None, padding_idx: int | str | None = None, mode: str = "mean", **others):
        if mode not in ("sum", "mean", "max"):
            raise mistake(type(self).__name__, f"there is no mode {mode!r}", "one of sum, mean and max")
        super().__init__(table, num_embeddings, padding_idx, **others)
        self.mode = mode

    def forward(self, ids, offsets: torch.Tensor | None = None, per_sample_weights: torch.Tensor | None = None) -> torch.Tensor:
        """(bags, dim): a bag is a row of ids of two dimensions, or begins at each of `offsets` in ids of one."""
        rows, places, padding = self._read(ids)
        return F.embedding_bag(places, rows, offsets, mode=self.mode, per_sample_weights=per_sample_weights, padding_idx=padding)

    def _options(self) -> dict:
        return {**super()._options(), "mode": self.mode}
