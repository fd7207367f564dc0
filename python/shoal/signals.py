"""What this process is told from outside while it trains: USR1, save; TERM, save and end.

A signal reaches one member or all of them, at any moment. It becomes a bit of the member's next iteration, which all members see
when that iteration is done; so checkpoint_due() is true at the same step everywhere. Where nothing was wrapped by data_parallel()
(DDP, FSDP), checkpoint_due() asks all members itself; where servers step (plan ps), in every 16th call.
"""

import os
import signal
import threading

from . import session

_SAVE, _END = 1, 2
_told = 0        # not yet agreed on
_ending = False  # agreed: this process ends once its state is saved
_at_fork = threading.local()
_SELDOM = 16     # calls of checkpoint_due() between two at which members that take steps of their own ask each other: each is a barrier
_calls = 0


def listen(*numbers: int) -> None:
    """Takes these signals over where nobody else has: their default would end the process on the spot."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in numbers:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _note)


def stop_listening() -> None:
    """What is not saved now will not be: TERM ends the process again."""
    if signal.getsignal(signal.SIGTERM) is _note:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _note(number, _) -> None:
    global _told
    _told |= _SAVE | _END if number == signal.SIGTERM else _SAVE


def pending() -> int:
    return _told


def told_all(asked: int) -> None:
    """All members know it by now."""
    global _told
    _told &= ~asked


def ending() -> bool:
    return _ending


def checkpoint_due() -> bool:
    """True when somebody has sent USR1 or TERM: to be asked after every step, by every member.

    From the first call on TERM no longer ends the process at once: it is answered here. The script saves; the next call ends it
    with exit status 143, when what Checkpoints saved is written.
    """
    global _ending, _calls
    if _ending:
        session.flush()
        raise SystemExit(128 + signal.SIGTERM)
    listen(signal.SIGUSR1, signal.SIGTERM)
    here, models = session.current(), session.models()
    asked = 0
    for model in models:
        asked |= model.asked()
    steps_apart = [model for model in models if not model.passes_signals]
    as_often = not any(model.is_joining for model in steps_apart)  # as the others ask
    _calls += as_often
    if not models or (steps_apart and as_often and _calls % _SELDOM == 0):
        for told in here.gather(bytes([_told]), "signals"):
            asked |= told[0]
    told_all(asked)
    _ending = bool(asked & _END)
    return asked != 0


# A forked child (data loaders) has nothing to save: TERM ends it. Held back while forking, or one that comes at once would be lost
# with the handler.


def _before_fork() -> None:
    _at_fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _after_fork() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _at_fork.mask)


def _after_fork_in_child() -> None:
    stop_listening()
    _after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
