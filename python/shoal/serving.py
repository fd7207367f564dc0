"""What a member does that only serves (SHOAL_ROLE=server): it takes part in each iteration of the workers', without data, until they train no more.

It has the model for the shapes of its gradients, and parameters as they were at the start: it computes nothing and takes no step.
"""

import signal

from . import _C, recording, session, signals, table


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


def serve_rows() -> None:
    """Likewise where servers step (plan ps): it has its rows of the workers' tables, until all of them leave those."""
    signals.listen(signal.SIGUSR1, signal.SIGTERM)
    here = session.everybody()
    tables = _C.Tables(here, here.new_channel(), here.new_channel())
    table.wait_for_last_use(session.everybody())
    tables.leave()
    raise SystemExit(0)
