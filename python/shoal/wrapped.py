"""What stands for a module in a training loop: attributes, state_dict, copies and pickles are the module's own."""

import copy
import weakref
from contextlib import contextmanager

import torch

from . import _C, compiled, nn, recording


def has_closure(args, kwargs) -> bool:
    """Of what an optimizer hands to its step's hooks: itself, and what step() was given."""
    return any(value is not None for value in (*args[1:], *kwargs.values()))


class Wrapped(torch.nn.Module):
    passes_signals = True  # asked() tells what any member was told (signals.py)
    is_joining = False     # in a block in which members take different numbers of steps

    def __init__(self, module: torch.nn.Module):
        super().__init__()
        self.module = module

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def state_dict(self, *args, **kwargs):
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        return self.module.load_state_dict(*args, **kwargs)

    def __deepcopy__(self, memo):
        """A copy is plain: an average of weights, say, takes no part in the exchange."""
        return copy.deepcopy(self.module, memo)

    def __reduce__(self):
        return _plain, (self.module,)


class AtSteps(Wrapped):
    """Backward passes exchange nothing: what travels does so at steps. `exchanges`: it is trained on several members."""

    def __init__(self, module: torch.nn.Module):
        super().__init__(module)
        self._recorded = _C.Alone() if recording.active() else None
        compiled.leave_out(type(self).forward)

    def forward(self, *args, **kwargs):
        if not torch.is_grad_enabled() or not self.exchanges:
            self._looked_at()
            return compiled.call(self.module, args, kwargs)
        self._forward_begins(args, kwargs)
        output = compiled.call(self.module, args, kwargs)
        self._forward_ends(output)
        return output

    def _looked_at(self) -> None:
        """The parameters are about to be used, not trained."""

    @torch._disable_dynamo
    def _forward_ends(self, output) -> None:
        if self._recorded is not None:
            self._recorded.forward_ends(output if isinstance(output, torch.Tensor) else next(tensors(output), None))

    @contextmanager
    def no_sync(self):
        """Gradients are gathered here only, inside and outside."""
        yield

    @contextmanager
    def join(self):
        """Members may run out of data at different times: who is done stays at the end of the block until all are, and all end alike."""
        self.is_joining = True
        try:
            yield
            with nn.out_of_data(self.module):
                self.flush()
        finally:
            self.is_joining = False


def _plain(module):
    return module


def tensors(output):
    """The tensors in what forward returned, at any depth of lists, tuples, dicts and dataclass-like objects.

    Each once, also where objects refer to one another in circles. A module's own tensors are its parameters, no output."""
    seen, to_look_at = set(), [output]
    while to_look_at:
        value = to_look_at.pop()
        if id(value) in seen or isinstance(value, torch.nn.Module):
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if value.requires_grad:
                yield value
        elif isinstance(value, dict):
            to_look_at.extend(value.values())
        elif isinstance(value, (list, tuple)):
            to_look_at.extend(value)
        elif hasattr(value, "__dict__"):
            to_look_at.append(vars(value))


def weak(owner, method: str, gone=None):
    """A hook that does not keep `owner` alive; gone(): what it does instead when the owner is no more."""
    reference = weakref.ref(owner)

    def hook(*args):
        alive = reference()
        if alive is not None:
            return getattr(alive, method)(*args)
        return gone() if gone else None

    return hook

