"""In which order modules with parameters of their own begin, observed in the first forward pass: it decides who goes first.

That pass runs uncompiled: torch.compile would compile the hooks that watch, and compile the model again without them.
"""

import torch


class FirstUse:
    def __init__(self, module, parameters, core):
        self._module, self._core = module, core
        self._parameters = parameters
        self.known = False

    @torch._disable_dynamo
    def watch(self, args, kwargs):
        """One forward pass. An error leaves the order unknown: half a pass says nothing, the next one is watched."""
        seen = {}

        def note(part, _):
            for parameter in part._parameters.values():
                seen.setdefault(id(parameter), len(seen))

        hooks = [part.register_forward_pre_hook(note) for part in self._module.modules() if part._parameters]
        try:
            with torch.compiler.set_stance("force_eager"):  # for what is compiled inside; disabling is for what is around us
                output = self._module(*args, **kwargs)
        finally:
            for hook in hooks:
                hook.remove()
        self.known = True
        self._core.set_first_use([seen.get(id(p), len(seen)) for p in self._parameters])
        return output

