"""The buffers of a module, which it may put others in place of: `self.mean = 0.9 * self.mean + ...` in a forward pass makes a new tensor."""

from . import _C


class Buffers:
    def __init__(self, module):
        self.now = list(module.buffers())
        self._names = [name for name, _ in module.named_buffers()]
        places = {id(tensor): [] for tensor in self.now}
        for part in module.modules():
            for key, tensor in part._buffers.items():
                if tensor is not None:
                    places[id(tensor)].append((part, key))
        self._places = [places[id(tensor)] for tensor in self.now]
        self._left = set()  # names of those that became something else: each member has its own from there on

    def reassigned(self) -> list[str]:
        """Names of those that are other tensors than at the last call, of the same size, type and device; `now` has all as they are. Each is a copy of what the
        module put there, which may be an output, too, that nobody is to write to."""
        others = []
        for i, name in enumerate(self._names):
            if name in self._left:
                continue
            known = self.now[i]
            for part, key in self._places[i]:
                tensor = part._buffers[key] if key in part._buffers else None
                if tensor is known:
                    continue
                if tensor is not None and (tensor.shape, tensor.dtype, tensor.device) == (known.shape, known.dtype, known.device):
                    others.append(name)
                    self.now[i] = part._buffers[key] = tensor.detach().clone()
                    self._places[i] = [(part, key)]  # what shared it with this part has the old one for good
                else:
                    self._left.add(name)
                    _C.note(f"buffer {name} is no longer what it was when the model was wrapped: each member has its own")
                break
        return others
