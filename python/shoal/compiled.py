"""What torch.compile makes of a model of ours: the user's module whole, in graphs cut where gradients may leave.

The backward pass of one compiled graph hands over all its gradients at its end, so nothing of them would travel beside it. PyTorch's
own DistributedDataParallel has the compiler cut the graph at its buckets ("Note [DDPOptimizer]" in torch/_dynamo/backends/
distributed.py); the compiler finds the bucket's size in whatever is the active DDP module while the model runs.
"""

import torch
from torch.nn.parallel import DistributedDataParallel

MIN_CUT = 1 << 20  # bytes; the compiler's own least first bucket
MOST_CUTS = 16     # graphs of one model: each costs compile time and what the compiler could have fused across it


class Cuts:
    """Stands where the compiler looks for the active DistributedDataParallel, as a context around the model's forward pass."""

    def __init__(self, parameters):
        whole = sum(p.numel() * p.element_size() for p in parameters)
        self.bucket_bytes_cap = max(MIN_CUT, whole // MOST_CUTS)
        self._outer = None

    @torch._disable_dynamo
    def __enter__(self):
        self._outer, DistributedDataParallel._active_ddp_module = DistributedDataParallel._active_ddp_module, self

    @torch._disable_dynamo
    def __exit__(self, *error):
        DistributedDataParallel._active_ddp_module = self._outer


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
