"""This process's place in the run. One session a process, made by init()."""

import atexit
import datetime
import itertools
import os
import signal
import sys
import weakref

import torch
from torch import distributed
from torch.distributed.constants import default_pg_timeout

from . import _C, recording, signals
from .errors import PeerLost, install_excepthook, mistake

_session = None  # of all members of the run
_workers = None  # of those that train: the same, unless some only serve (SHOAL_ROLE=server); there None
_failed = False  # this process ends with an uncaught exception
_owner = None  # the process that has joined: a child that it forks (data loaders) owns nothing here
_AT_ONCE = 64 << 20  # bytes of one message of broadcast_pieces()
_users = weakref.WeakValueDictionary()  # what exchanges over the session and must let go of it before it ends, in the order in which it came
_served = []  # models that servers wait for: they live until these are told that training is over
_arrivals = itertools.count()


def init() -> None:
    """Joins the run that this process was started in, by whichever launcher (docs/launchers), or alone. Again: does nothing."""
    global _session, _workers, _owner
    if _session is not None:
        return
    _owner = os.getpid()
    install_excepthook(_give_up)  # around what a script has put there since we were imported
    signals.listen(signal.SIGUSR1)
    longest = patience()
    settings = {"PyTorch": torch.__version__, "SHOAL_TIMEOUT": f"{longest:g} s", "SHOAL_ON_PEER_LOST": os.environ.get("SHOAL_ON_PEER_LOST", "fail")}
    launcher, rank, size, _ = _C.find_place()
    store = None
    if launcher == "torchrun" and size > 1:
        store = store_of_torchrun(size)
        _session = _join_by_torchrun(store, rank, settings, longest)
    else:
        _session = _C.join(settings, longest)
    _workers = _session
    if _session.servers:
        _workers = None if _session.serves else _session.of_workers()
    if os.environ.get("SHOAL_VERBOSE", "0").lower() not in ("", "0", "false"):
        _say_addresses()
    recording.start(run_folder(), _session, store, reports=launcher != "shoal" and rank == 0)


def _say_addresses() -> None:
    peers = [f"rank {rank} ({host}) at {address}" + (" and through shared memory" if link["shared_memory"] else "")
             for rank, (host, address, link) in enumerate(zip(_session.hosts, _session.addresses, _session.links())) if rank != _session.rank]
    print(f"shoal: rank {_session.rank} ({_session.hosts[_session.rank]}) reaches {', '.join(peers) or 'nobody: it is alone'}",
          file=sys.stderr, flush=True)


def run_folder() -> str | None:
    """Where the run keeps its plan, events and report; None for a run that keeps nothing."""
    return os.environ.get("SHOAL_RUN_DIR")


def write_plan(plan: str) -> None:
    """Leaves the plan in the run's folder; the same on all members, rank 0 writes it."""
    folder = run_folder()
    if folder and rank() == 0:
        _C.write_in_run(folder, "plan.json", plan)


def patience() -> float:
    """Seconds: the longest wait for the others in any operation."""
    text = os.environ.get("SHOAL_TIMEOUT", "1800")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e7:
        raise mistake("SHOAL_TIMEOUT", f"{text!r} is not a number of seconds")
    return seconds


def store_of_torchrun(size: int):
    """Where torchrun's workers meet, or those whom somebody has given its variables by hand."""
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise mistake(name, "not set, but RANK and WORLD_SIZE are", "torchrun sets all four; unset both to run alone")
    if not os.environ["MASTER_PORT"].isdecimal():
        raise mistake("MASTER_PORT", f"{os.environ['MASTER_PORT']!r} is no port")
    at, longest = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", _C.join_patience()
    try:
        store = next(distributed.rendezvous("env://", timeout=datetime.timedelta(seconds=longest)))[0]
    except distributed.DistError as error:
        if "EADDRINUSE" in str(error):
            raise mistake("MASTER_PORT", f"somebody else listens at {at} already", "choose another port") from None
        raise PeerLost(f"join: the {size} members have not met at {at} within {longest:g} s: {str(error).splitlines()[0]} "
                       "(start every member; MASTER_ADDR and MASTER_PORT name a host and a port of rank 0's)") from None
    store.set_timeout(default_pg_timeout)
    return store


def _join_by_torchrun(store, rank: int, settings: dict[str, str], longest: float):
    session, secret_from_store = _C.join_by_store(store, settings, longest)
    if secret_from_store and rank == 0:
        print("shoal: the job's secret travels through torchrun's store, which anybody on this network may read; "
              "set SHOAL_SECRET to avoid that", file=sys.stderr)
    return session


def broadcast_pieces(here, data, source: int, label: str):
    """`data` of member `source`, of any size, piece by piece on all members: each of them takes all pieces."""
    for i in range(int(here.broadcast(str(-(-len(data) // _AT_ONCE)).encode(), source, label))):
        yield here.broadcast(bytes(data[i * _AT_ONCE:(i + 1) * _AT_ONCE]), source, label)


def broadcast_bytes(here, data, source: int, label: str) -> bytes:
    return b"".join(broadcast_pieces(here, data, source, label))


def everybody():
    """The session of all members, servers too; joins at the first use."""
    init()
    return _session


def current():
    """The session of the members that train, in which all is done but data_parallel() and tables."""
    init()
    if _workers is None:
        raise mistake("SHOAL_ROLE", "this member only serves, and has a part in shoal.data_parallel() and shoal.Table alone",
                      "let the script come to one of these before what else members do together: that call does not return here")
    return _workers


def rank() -> int:
    """This member's number, from 0 on; of one that only serves, one of those behind the workers'."""
    return everybody().rank


def size() -> int:
    """How many members train, among whom the data is divided."""
    return everybody().workers


def members() -> list[int]:
    """The ranks that are left, ascending: all of them, unless the run goes on without some that were lost (--on-peer-lost shrink, regrow). The same on
    all members after a step; who deals out data by it deals anew when it has changed."""
    here = everybody()
    return here.members_ahead[:here.workers]


def require_members_for_good(where: str, why: str = "others do not read what a lost member has read", policy: str = "fail") -> None:
    """For what lives in the members that there were at the start: nobody can take it over who comes in place of a lost one."""
    if current().rejoins:
        raise mistake(where, why, f"run with --on-peer-lost {policy}")


def add_user(user) -> None:
    """`user.settle()` is called by flush(), `user.release()` before the session ends: by all members in the same order."""
    number = next(_arrivals)
    _users[number] = user
    if _session.servers and getattr(user, "exchanges", False):
        _served.append(user)


def models() -> list:
    """The models of this process that are trained on several members."""
    return [user for user in _users.values() if getattr(user, "exchanges", False)]


def failed() -> bool:
    """This process is ending with an uncaught exception."""
    return _failed


def flush() -> None:
    """Waits until nothing is on its way any more, in every model of this process. It brings members that take local steps no nearer to each
    other: their model.flush() does."""
    for user in list(_users.values()):
        user.settle()


def _leave() -> None:
    global _session, _workers
    if os.getpid() != _owner:
        return
    failure = None
    for user in list(_users.values()):
        try:
            user.release()
        except Exception as error:  # nobody catches it here any more
            failure = failure or error
    if failure is not None:
        _give_up(failure)
    recording.end(_failed)
    _served.clear()
    _session = _workers = None
    if failure is not None:  # the interpreter would end with the status that it had before
        sys.stdout.flush()
        print(f"shoal: {failure}", file=sys.stderr, flush=True)
        os._exit(getattr(failure, "exit_code", 1))


def _give_up(error: BaseException) -> None:
    global _failed
    _failed = True
    # An error of Shoal has been told already by who found it; a KeyboardInterrupt reaches every member by itself.
    if _session is None or os.getpid() != _owner or isinstance(error, (PeerLost, KeyboardInterrupt)):
        return
    text = " ".join(str(error).split())
    _session.give_up(f"it ended with {type(error).__name__}: {text}")


install_excepthook(_give_up)
atexit.register(_leave)
