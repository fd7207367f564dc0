"""The buffers of a module, which it may put others in place of: `self.mean = 0.9 * self.mean + ...` in a forward pass makes a new tensor."""

from .errors import mistake


class Buffers:
    def __init__(self, module):
        self.names = [name for name, _ in module.named_buffers()]
        at = {id(tensor): (part._buffers, key) for part in module.modules() for key, tensor in reversed(part._buffers.items()) if tensor is not None}
        self._places = [at[id(tensor)] for tensor in module.buffers()]
        self._known = list(module.buffers())

    def reassigned(self) -> list[str]:
        """Names of those that are other tensors than at the last call; `now` has all as they are. Throws where one is gone."""
        if all(place.get(key) is tensor for (place, key), tensor in zip(self._places, self._known)):
            return []
        now = [place.get(key) for place, key in self._places]
        for name, tensor in zip(self.names, now):
            if tensor is None:
                raise mistake(f"buffer {name}", "it was there when the model was wrapped, and is none now", "keep it, or wrap the model without it")
        for name, tensor, known in zip(self.names, now, self._known):
            if (tensor.shape, tensor.dtype, tensor.device) != (known.shape, known.dtype, known.device):
                raise mistake(f"buffer {name}", f"it was {_text(known)} and is {_text(tensor)}: members could not share it", "keep what changes so out of the module's buffers")
        others = [name for name, tensor, known in zip(self.names, now, self._known) if tensor is not known]
        self._known = now
        return others

    @property
    def now(self) -> list:
        return self._known


def _text(tensor) -> str:
    return f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
