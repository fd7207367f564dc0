"""What torch.compile makes of a model of ours: the user's module whole, in graphs cut where gradients may leave.

The backward pass of one compiled graph hands over all its gradients at its end, so nothing of them would travel beside it. PyTorch's
own DistributedDataParallel has the compiler cut the graph at its buckets ("Note [DDPOptimizer]" in torch/_dynamo/backends/
distributed.py); the compiler finds the bucket's size in whatever is the active DDP module while the model runs.

Compiled code takes parameters past Python's functions, and checks before it runs that each is of the class that it was compiled for: one
that waits for its step (next_use.py) would have it compiled anew. So the graphs that a pass enters, in order, with their parameters are
taken down, and in the next pass those of a graph are stepped when the graph before it has ended, those of the first when the pass
begins. What is between two graphs runs uncompiled, where each parameter is its own gate. A pass that enters other graphs than the one before
is exact all the same: whatever waits is stepped before the compiler looks, and a graph before it runs steps what it is given.
"""

import functools

import torch
from torch.nn.parallel import DistributedDataParallel

from . import _C

MIN_CUT = 1 << 20  # bytes; the compiler's own least first bucket
MOST_CUTS = 16     # graphs of one model: each costs compile time and what the compiler could have fused across it
MOST_CHANGES = 4   # of the graphs that passes enter, before all is stepped in front of them: each may cost a compilation


class Graphs:
    """Of one model. Stands where the compiler looks for the active DistributedDataParallel, as a context around the model's forward pass."""

    def __init__(self, parameters, steps):
        whole = sum(p.numel() * p.element_size() for p in parameters)
        self._cut = max(MIN_CUT, whole // MOST_CUTS)
        self._number = {id(p): number for number, p in enumerate(parameters)}
        self._steps = steps
        self._before = None   # numbers of the parameters of each graph that the last pass entered; None: not known
        self._entered = []    # likewise in this pass, so far
        self._changes = 0
        self._outer = None

    @property
    def known(self) -> bool:
        """The coming pass may begin while parameters wait, also where it is compiled."""
        return self._before is not None and self._changes <= MOST_CHANGES and torch._dynamo.utils.get_optimize_ddp_mode() == "ddp_optimizer"

    @property
    def ran(self) -> bool:
        """The last pass entered some."""
        return bool(self._before)

    @property
    def bucket_bytes_cap(self) -> int:
        """Asked for by the compiler when it is about to look at a frame: it must see parameters as they are when they do not wait."""
        if self._steps.waiting:
            self._changed()
        return self._cut

    @torch._disable_dynamo
    def __enter__(self):
        place, optimizer = _optimizer_of_graphs()
        self._outer = DistributedDataParallel._active_ddp_module, place.DDPOptimizer
        DistributedDataParallel._active_ddp_module, place.DDPOptimizer = self, optimizer
        self._entered.clear()
        self._make_way()

    @torch._disable_dynamo
    def __exit__(self, error, *_):
        place, _ = _optimizer_of_graphs()
        DistributedDataParallel._active_ddp_module, place.DDPOptimizer = self._outer
        self._before = None if error else tuple(self._entered)

    def enters(self, arguments) -> None:
        """A graph is about to run."""
        used = frozenset(self._number[id(a)] for a in arguments if id(a) in self._number)
        if self._steps.waiting:
            self._steps.settle(used)
        if self._steps.waiting and self._next() != used:
            self._changed()
        self._entered.append(used)

    def leaves(self) -> None:
        self._make_way()

    def refuse(self) -> None:
        """Some graph does not say which parameters it uses."""
        self._changes = MOST_CHANGES + 1

    def _next(self):
        """The parameters of the graph that this pass enters next, as far as the last one tells."""
        return self._before[len(self._entered)] if self._before and len(self._entered) < len(self._before) else frozenset()

    def _make_way(self) -> None:
        if self._steps.waiting and self._next():
            self._steps.settle(self._next())

    def _changed(self) -> None:
        self._steps.settle_all()
        self._before = None
        self._changes += 1
        if self._changes == MOST_CHANGES + 1:
            _C.note("barrier: all means are awaited before the model runs because it runs other compiled graphs from step to step")


def _telling(graph):
    """`graph`, and whichever model runs it is told when."""

    def run(*arguments):
        model = DistributedDataParallel._active_ddp_module
        if not isinstance(model, Graphs):
            return graph(*arguments)
        model.enters(arguments)
        output = graph(*arguments)
        model.leaves()
        return output

    return run


@functools.cache
def _optimizer_of_graphs():
    """Where the compiler looks for it, and what stands there while a model of ours runs."""
    from torch._dynamo.backends import distributed  # seconds at the first import, which every optimizer has caused already

    class DDPOptimizer(distributed.DDPOptimizer):
        def compile_fn(self, graph, *args, **kwargs):
            if any(True for _ in graph.parameters()):  # and not among its arguments
                DistributedDataParallel._active_ddp_module.refuse()
            return _telling(super().compile_fn(graph, *args, **kwargs))

    return distributed, DDPOptimizer


def is_compiled(module) -> bool:
    """The coming pass through `module`, or a part of it, runs what the compiler made: it takes parameters past Python's functions."""
    if torch._C._dynamo.eval_frame.get_eval_frame_callback() not in (None, False):
        return True
    return any(part._compiled_call_impl is not None or hasattr(part, "_orig_mod") for part in module.modules())


def call(module, args, kwargs):
    return module(*args, **kwargs)


def leave_out(function) -> None:
    """The compiler does not compile this function, but looks into those it calls: call(), and through it the user's module, whole."""
    from torch._dynamo.decorators import skip  # seconds at the first import, which every optimizer has caused already

    skip(function)
