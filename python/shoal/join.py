"""Uneven inputs: a member without data stays, with weight 0, until all are done.

While it stays it takes no steps: it cannot know what the others do between backward and step (clipping, schedules).
At the end it takes over parameters, buffers and optimizer state of a member that was active to the last.
"""

import io

import torch

from . import _C, nn, session, signals


def wait_for_the_others(wrapped) -> None:
    core, optimizer = wrapped._core, wrapped._optimizer
    wrapped.flush()
    core.set_asks(signals.pending())
    while core.idle_iteration():
        core.set_asks(signals.pending())
        nn.step(wrapped.module)  # nothing: tables wait for nobody's clock
    source = core.take_over_from()
    if source is None:
        return
    values = [*wrapped.module.parameters(), *wrapped.module.buffers()]
    _C.broadcast_tensors(session.current(), values, source, "values of the model after join")
    take_over_optimizer(optimizer, source)


def take_over_optimizer(optimizer, source: int, lags: bool = True) -> None:
    """Its state becomes that of member `source`, on all members at once that lag."""
    here, packed = session.current(), io.BytesIO()
    if here.place == source:
        torch.save(optimizer.state_dict(), packed)
    received = session.broadcast_bytes(here, packed.getbuffer(), source, "the optimizer's state")
    if lags and here.place != source:
        optimizer.load_state_dict(torch.load(io.BytesIO(received), weights_only=True))
