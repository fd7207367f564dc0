"""The buffers of a module, which it may put others in place of: `self.mean = 0.9 * self.mean + ...` in a forward pass makes a new tensor."""

from . import _C


class Buffers:
    def __init__(self, module):
        self._known = list(module.buffers())
        self._names = [name for name, _ in module.named_buffers()]
        places = {id(tensor): [] for tensor in self._known}
        for part in module.modules():
            for key, tensor in part._buffers.items():
                if tensor is not None:
                    places[id(tensor)].append((part, key))
        self._places = [places[id(tensor)] for tensor in self._known]
        self._left = set()  # names of those that became something else: each member has its own from there on

    def reassigned(self) -> list[str]:
        """Names of those that are other tensors than at the last call, of the same size, type and device; `now` has all as they are. Each is a copy of what the
        module put there, which may be an output, too, that nobody is to write to."""
        others = []
        for i, places in enumerate(self._places):
            known = self._known[i]
            for part, key in places:
                tensor = part._buffers[key] if key in part._buffers else None
                if tensor is known or self._names[i] in self._left:
                    continue
                if tensor is None or (tensor.shape, tensor.dtype, tensor.device) != (known.shape, known.dtype, known.device):
                    self._left.add(self._names[i])
                    _C.note(f"buffer {self._names[i]} is no longer what it was when the model was wrapped: each member has its own")
                    continue
                others.append(self._names[i])
                self._known[i] = part._buffers[key] = tensor.detach().clone()
        return others

    @property
    def now(self) -> list:
        return self._known

    def has_fractions(self, name: str) -> bool:
        tensor = self._known[self._names.index(name)]
        return tensor.is_floating_point() or tensor.is_complex()
