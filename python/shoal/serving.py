"""What a member does that only serves (SHOAL_ROLE=server) where a model is trained: it takes part in each iteration of the workers', without data, until they train no more.

It has the model for the shapes of its gradients, and parameters as they were at the start: it computes nothing and takes no step.
"""

import signal

from . import recording, signals


def serve(wrapped) -> None:
    """Ends the process. TERM does not: workers may be saving, and say when they are done."""
    signals.listen(signal.SIGUSR1, signal.SIGTERM)
    core, serves = wrapped._core, True
    while serves:
        core.set_asks(signals.pending())
        serves = core.serve()
        signals.told_all(core.asked())
        recording.tick()
    raise SystemExit(0)
