"""The moment at which a parameter is next used, whoever uses it.

From wait() on a parameter is an instance of a subclass of its own class. The first function of PyTorch that takes it, in a forward
pass or anywhere else, tells the owner, who brings the parameter up to date; before that function runs the parameter is what it was.
What only describes a parameter (its shape, say) does not count, and neither does code that takes it past Python's functions.
"""

import inspect
import sys

import torch

_Tensor = torch.Tensor
_METADATA = {getattr(_Tensor, name).__get__ for name in (
    "shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "grad_fn", "is_cpu", "is_cuda", "is_meta", "is_sparse",
    "is_quantized", "is_nested", "itemsize", "nbytes", "_backward_hooks", "_post_accumulate_grad_hooks")} | {
    _Tensor.size, _Tensor.dim, _Tensor.numel, _Tensor.stride, _Tensor.element_size, _Tensor.is_floating_point, _Tensor.is_complex,
    _Tensor.is_contiguous, _Tensor.storage_offset, _Tensor.get_device, _Tensor.__len__, _Tensor.register_hook,
    _Tensor.register_post_accumulate_grad_hook, torch.is_floating_point, torch.is_complex, torch.numel}
READ, WRITE, DELETE = _Tensor.grad.__get__, _Tensor.grad.__set__, _Tensor.grad.__delete__  # what is done to .grad
_ZERO_GRAD = {inspect.unwrap(kind.zero_grad).__code__ for kind in (torch.optim.Optimizer, torch.nn.Module)}
_owner = {}    # id of a parameter that waits -> (who is told, its number there)
_waiting = {}  # class -> the one of a parameter of that class while it waits


def wait(owner, number: int, parameter) -> None:
    """owner.used(numbers, function) is called before the next use. It calls done() for these, or returns True for a use that changes
    nothing of the wait."""
    _owner[id(parameter)] = owner, number
    parameter.__class__ = _waiting_class(type(parameter))


def done(parameter) -> None:
    if _owner.pop(id(parameter), None) is not None:
        parameter.__class__ = type(parameter).__bases__[0]


def waits(parameter) -> bool:
    return id(parameter) in _owner


def become(parameter, kind: type) -> None:
    """The class of `parameter`, or of what it will be when it waits no longer, becomes `kind`."""
    parameter.__class__ = _waiting_class(kind) if waits(parameter) else kind


def gradient(parameter):
    """Its .grad as it is, which is no use."""
    with torch._C.DisableTorchFunctionSubclass():
        return READ(parameter)


def only_drops_gradients() -> bool:
    """The caller was asked for .grad by zero_grad(), which then sets it to None."""
    frame = sys._getframe(1)
    for _ in range(16):  # ours and PyTorch's, between there and here
        if frame is None:
            return False
        if frame.f_code in _ZERO_GRAD:
            return frame.f_locals["set_to_none"]
        frame = frame.f_back
    return False


def tell(*values) -> None:
    """For code that takes parameters past Python's functions: these are about to be used."""
    _tell(None, values)


def _waiting_class(kind: type) -> type:
    if kind not in _waiting:
        own = {"grad": _GRAD} if kind.grad is _Tensor.grad else {}  # else it has somebody else to ask first (pending.py), who asks PyTorch
        _waiting[kind] = type(kind)("Waiting" + kind.__name__, (kind,), {
            "_shoal_waits": True, "__torch_function__": classmethod(_torch_function), "__deepcopy__": _deepcopy, **own})
    return _waiting[kind]


def _use_of_gradient(function):
    """What is done to .grad, told without the detour over PyTorch's dispatch: zero_grad() does it to every parameter in every step."""
    @torch._disable_dynamo
    def use(self, *value):
        if not torch._C._is_torch_function_enabled():  # whoever looks past PyTorch's dispatch looks past this
            return function(self, *value)
        owner, number = _owner[id(self)]
        if not owner.used([number], function):
            return function(self, *value)
        with torch._C.DisableTorchFunctionSubclass():
            return function(self, *value)
    return use


_GRAD = property(*map(_use_of_gradient, (READ, WRITE, DELETE)))


@torch._disable_dynamo
def _torch_function(cls, function, types, args=(), kwargs=None):
    kwargs = kwargs or {}
    if function in _METADATA or _tell(function, (args, kwargs)):
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **kwargs)
    return function(*args, **kwargs)


def _tell(function, values) -> bool:
    told = {}
    _collect(values, told)
    return any([owner.used(numbers, function) for owner, numbers in told.items()])


def _collect(value, told) -> None:
    if isinstance(value, torch.Tensor):
        if hasattr(type(value), "_shoal_waits"):
            owner, number = _owner[id(value)]
            told.setdefault(owner, []).append(number)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, told)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, told)


def _deepcopy(self, memo):
    self.data  # a use: then it is what it was
    return self.__deepcopy__(memo)
