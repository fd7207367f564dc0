"""The moment at which an optimizer's state is next used by anybody but its own step.

From wait() on the optimizer is an instance of a subclass of its own class. Who asks for its `state`, copies or pickles it tells the owner,
who brings it up to date before.
"""

_owners = {}   # id of an optimizer that waits -> who are told
_waiting = {}  # class -> the one of an optimizer of that class while it waits


def wait(optimizer, owner) -> None:
    """owner.settle_all(), which calls done(), comes before the next use."""
    _owners.setdefault(id(optimizer), {})[id(owner)] = owner
    kind = type(optimizer)
    if "_shoal_waits" in vars(kind):
        return
    if kind not in _waiting:
        _waiting[kind] = type(kind)(kind.__name__, (kind,), {
            "_shoal_waits": True, "state": property(_state, _set_state), "__reduce_ex__": _reduce, "__module__": kind.__module__})
    optimizer.__class__ = _waiting[kind]


def done(optimizer, owner) -> None:
    owners = _owners.get(id(optimizer), {})
    owners.pop(id(owner), None)
    if not owners and _owners.pop(id(optimizer), None) is not None:
        optimizer.__class__ = type(optimizer).__bases__[0]


def _settle(optimizer) -> None:
    for owner in list(_owners.get(id(optimizer), {}).values()):
        owner.settle_all()


def _state(self):
    _settle(self)
    return self.__dict__["state"]


def _set_state(self, value) -> None:
    _settle(self)
    self.__dict__["state"] = value


def _reduce(self, protocol):
    _settle(self)
    return self.__reduce_ex__(protocol)
