"""A single member has nothing to exchange; where its run is recorded, its compute still shows in the report."""

from . import _C, recording


class Alone:
    """Notes forward, backward and optimizer of one model as events."""

    def __init__(self, optimizer):
        self._step = 0
        self._backward_began = None
        self._optimizer_began = 0.0
        optimizer.register_step_pre_hook(self._before_step)
        optimizer.register_step_post_hook(self._after_step)

    def forward(self, module, args, kwargs):
        began = _C.now()
        output = module(*args, **kwargs)
        _C.span("forward", began, _C.now(), self._step)
        if getattr(output, "requires_grad", False):
            output.register_hook(self._backward_begins)
        return output

    def _backward_begins(self, gradient):
        self._backward_began = _C.now()

    def _before_step(self, optimizer, args, kwargs):
        self._optimizer_began = _C.now()
        if self._backward_began is not None:
            _C.span("backward", self._backward_began, self._optimizer_began, self._step)
            self._backward_began = None

    def _after_step(self, optimizer, args, kwargs):
        _C.span("optimizer", self._optimizer_began, _C.now(), self._step)
        self._step += 1
        recording.tick()
