"""What stands for a module in a training loop: attributes, state_dict, copies and pickles are the module's own."""

import copy
import weakref

import torch


class Wrapped(torch.nn.Module):
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


def weak(owner, method: str):
    """A hook that does not keep `owner` alive."""
    reference = weakref.ref(owner)

    def hook(*args):
        alive = reference()
        if alive is not None:
            getattr(alive, method)(*args)

    return hook

