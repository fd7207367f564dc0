"""Shared rows with clocks: a parameter server for models that are larger than a member, or that bear stale reads.

    weights = shoal.Table("weights", 64, consistency="ssp:3")   # all members
    rows = weights.read(keys)          # (len(keys), 64), at most three clocks old; own increments at once
    weights.add(keys, -rate * gradients)
    weights.tick()                     # one unit of work is complete
"""

import dataclasses
import os
import signal

import numpy as np

from . import _C, session, signals, table_files
from .errors import PeerLost, mistake
from .keys import keys_of

_TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
_tables = {}  # session -> its _Tables
_WORK = "the work on tables, with whoever comes in place of a lost member"


@dataclasses.dataclass(frozen=True)
class Initial:
    """Values of rows that nobody has written; a function of seed, key and column: Initial.normal(0, 0.01)."""

    kind: str
    a: float
    b: float = 0.0
    seed: int = 0

    @staticmethod
    def constant(value: float) -> "Initial":
        return Initial("constant", value)

    @staticmethod
    def uniform(low: float, high: float, seed: int = 0) -> "Initial":
        return Initial("uniform", low, high, seed)

    @staticmethod
    def normal(mean: float, deviation: float, seed: int = 0) -> "Initial":
        return Initial("normal", mean, deviation, seed)


class _Tables:
    """A session's tables; given up before it ends."""

    def __init__(self, among):
        if among.rejoins:
            _require_again(among)
        self._among, self.core = among, None
        self._channels = among.new_channel(), among.new_channel()
        self._opened = []         # where others come in place of lost members: to be opened again, in this order
        self._group = None        # in which they are open
        self._done = False        # the work on them is, on all members
        self._with_all(lambda: None)
        _tables[among] = self
        session.add_user(self)

    @property
    def has_servers(self) -> bool:
        """Members hold rows that do nothing else."""
        return bool(self._among.servers)

    def open(self, table) -> None:
        if not self._among.rejoins:
            table._open(self.core)
            return
        self._opened.append(table)
        self._with_all(lambda: None)

    def _with_all(self, work):
        """What work() returns once no member was lost in it. Where others come in place of lost members, tables are opened among all of these, and it is done again."""
        here = self._among
        while True:
            group = here.group
            try:
                if self._group != group:
                    self.core, self._group = _C.Tables(here, *self._channels, self.core), group
                for table in self._opened:
                    if table._opened_in is not self.core:
                        table._open(self.core)
                return work()
            except PeerLost:
                if not here.rejoins or (here.group == group and here.meet(_WORK) == group):
                    raise

    def again(self, work, arguments):
        if self._done:
            raise mistake("again()", "the work on tables is done, and who came in place of a lost member would do it again", "let one again() hold all of it")

        def whole():
            self._among.wait_for_more()
            result = work(*arguments)
            self._among.stop_waiting_for_more()  # whoever would join from here on finds the work done
            if self._among.meet(_WORK) != self._group:  # who is lost before all are done has not done its own
                raise PeerLost("a member was lost before it had done its work")
            return result

        result = self._with_all(whole)
        self._done = True
        return result

    def settle(self) -> None:
        """Nothing is under way between two calls."""

    def release(self) -> None:
        """Others may still read what this member owns: all leave together, unless something went wrong."""
        core, self.core = self.core, None
        _tables.pop(self._among, None)
        self._opened.clear()
        if core is not None and not session.failed():
            try:
                wait_for_last_use(self._among)
                core.leave()
            except PeerLost:
                if not self._done:  # else nobody needs anybody's rows any more
                    raise


def _require_again(here) -> None:
    """Where others come in place of lost members (--on-peer-lost rejoin) tables find each other by again(); what models have is carried otherwise."""
    if here.regrows:
        raise mistake("tables", "nobody waits for those who come, and clocks would", "run with --on-peer-lost rejoin, and shoal.again()")
    if here.carries or session.models():
        raise mistake("tables", "a model is trained beside them, and members that come in place of lost ones take over one or the other", "run with --on-peer-lost shrink")
    here.carry(bytes, lambda _: None, list, bytes, lambda _: True, int)  # nothing: rows and clocks are found in the tables of the others
    if here.arriving:
        here.arrive()
        here.meet(_WORK)  # where the others wait for it


def again(work, *arguments):
    """work(*arguments), and what it returns. Under `shoal run --on-peer-lost rejoin`, where a member is lost in it, all wait until another process is in its
    place and do their work again, from where the tables are: at table.clock, with exactly what was added in the clocks before, alike on all members.

        weights = shoal.Table("weights", 64, consistency="ssp:3")   # by who comes, too

        def work():
            while weights.clock < 1000:
                keys = mine(weights.clock, shoal.rank())
                weights.add(keys, change(weights.read(keys)))
                weights.tick()
            weights.barrier()
            return weights.read(results)

        print(shoal.again(work))

    What members do together with tables (barrier(), restore(), another consistency) belongs into it, behind a look at table.clock where it is to be done once;
    define() each time. Members that `shoal join RUN` adds meanwhile come in the same way: shoal.rank() and shoal.size() are new for the work that is done then. What else
    members do together (shoal.save(), checkpoint_due()) does not, nor before it: who comes does alone what stands there. One call holds all of
    a run's work on tables, and returns when all members have done theirs. Elsewhere it is a plain call."""
    here = session.current()
    if not here.rejoins:
        return work(*arguments)
    return (_tables.get(here) or _Tables(here)).again(work, arguments)


def session_of_tables():
    """Of whoever has a script's tables: of all, also of members that only serve, unless these take part in the steps of a model. Such a member has rows from
    the first table on, and the call does not return there."""
    here = session.everybody()
    if not here.servers or here in _tables:
        return here
    if session.models():
        return session.current()
    if here.serves:
        serve_rows()
    return here


def serve_rows() -> None:
    """What a member does that only serves: it has its rows of the workers' tables until all of them leave those. Ends the process."""
    signals.listen(signal.SIGUSR1, signal.SIGTERM)
    here = session.everybody()
    tables = _C.Tables(here, here.new_channel(), here.new_channel())
    wait_for_last_use(here)
    tables.leave()
    raise SystemExit(0)


def require_free_servers(where: str) -> None:
    """For what members that only serve are to take part in: once they hold rows they do nothing else."""
    here = session.everybody()
    if here.servers and here in _tables:
        raise mistake(where, "members that only serve hold rows of tables by now, and do nothing else", "start without --servers, or wrap the model before the first table")


def wait_for_last_use(among) -> None:
    """By all members, where some only serve: these may not leave while a worker needs their rows, and have no clocks that tell."""
    if among.servers:
        among.gather("", "the last use of the tables")


def barrier(tables) -> None:
    """By all members: that of several tables at once. One after the other, who waits at the first would hold others back at the second."""
    for table in tables:
        table._core.arrive()
    for table in tables:
        table._core.meet()


def _name_of(dtype) -> str | None:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return None


class Table:
    """Rows of `dim` elements by 64-bit key (or string), spread over all members. Opened by all of them alike.

    consistency: how old what is read may be: "bsp" (nothing: exact, the same bits in every run), "ssp:S" (rows are fetched when they lack more
    than the last S clocks), "essp:S" (the same bound; rows that changed are pushed), "async" (no bound), or "bsp:K" (a clock is complete
    without the K slowest members, whose gradients for it are dropped and counted). docs/tables.md has all: "cap:S", "vap:V", "cvap:S:V" and more.
    rule: what servers do with what is added: "sum", or they take it for gradients and step: "sgd:RATE[:MOMENTUM]", "adagrad:RATE[:EPSILON]",
    "adam:RATE[:BETA1:BETA2:EPSILON]", "adaptive-revision:RATE[:EPSILON]". Under bsp a clock is one step with the mean of all members' gradients, else each member's is a step.
    encode: how floats travel: "none" (as they are), "bf16" or "int8", in about a half or a quarter of the bytes of float32 (docs/tables.md, Fewer bytes).
    not_finite: what becomes of values that are not: "refuse" (the call), "clip" (infinities become the largest value, NaN 0) or "pass".
    """

    def __init__(self, name: str, dim: int = 1, dtype: str = "float32", consistency: str = "essp:3", initial: Initial | None = None,
                 rule: str = "sum", encode: str = "none", not_finite: str = "refuse", _among=None):
        if not isinstance(name, str) or not isinstance(dim, int) or dim < 1:
            raise mistake(f"table {name}", f"a name is a string and dim a positive integer, not {dim!r}")
        if _name_of(dtype) not in _TYPES:
            raise mistake(f"table {name}", f"no table holds {dtype}; one of {', '.join(_TYPES)}")
        among = _among or session_of_tables()
        self._tables = _tables.get(among) or _Tables(among)
        initial = initial or Initial.constant(0)
        if initial.kind not in ("constant", "uniform", "normal"):
            raise mistake(f"table {name}", f"no initial values are called {initial.kind}; one of constant, uniform and normal")
        self.name, self.dim, self.dtype, self.first_rule = name, dim, np.dtype(dtype), rule
        self.age = None
        self._opened_in = None    # of its session's tables, which are others after a loss
        self._spec = (name, dim, _TYPES[self.dtype.name], consistency, initial.kind, initial.a, initial.b, initial.seed, rule, encode, not_finite)
        self._tables.open(self)

    def _open(self, core) -> None:
        self._core, self._opened_in = core.open(*self._spec), core

    @property
    def consistency(self) -> str:
        """Another one is set by all members together, which is a barrier: table.consistency = "essp:2"."""
        return self._core.consistency

    @consistency.setter
    def consistency(self, consistency: str) -> None:
        self._core.switch_to(consistency)

    def telemetry(self) -> dict:
        """What this member met so far: rows read by how many clocks they were `behind` (the last of 64 is for more), and by how
        long ago their server had vouched for them (`old`, rows for each span; `old_below`, its end in seconds), seconds `waited` and how
        often (`waits`) by cause: "gate" (the slowest member's clock), "fetch" (rows on their way), "back-pressure" (servers that have not
        counted in what this member said), "bound" (on values) and "barrier"; bytes `said` and `heard`, and those of its servers: written to
        `snapshots`, `handed_over` to other members, `taken_over`; rows `unsubscribed`; clocks of this member that came too late and were `dropped`. `shoal explain RUN` tells the sum of it."""
        return self._core.telemetry()

    def holders(self) -> list[list[int]]:
        """For each part of the rows the members that hold all of it, as far as this one knows; the first of them answers who reads."""
        return self._core.holders()

    def move(self, part: int, to: int) -> None:
        """By one member: rank `to` holds this part of the rows (an index of holders()) in place of who answers for it. Returns when it does; all
        others read and write meanwhile. In runs with --on-peer-lost shrink."""
        if not isinstance(part, int) or not isinstance(to, int) or part < 0 or to < 0:
            raise mistake(f"table {self.name}", f"part and rank are numbers from 0 on, not {part!r} and {to!r}")
        self._core.move(part, to)

    @staticmethod
    def depart() -> None:
        """This member goes, in good order, from all of its tables, while others use them; in a run that survives the loss of members. All that
        it has added counts, others hold its rows when this returns, and nobody waits for it any more. It may use no table afterwards, and others
        open none."""
        tables = _tables.get(session.everybody()) or _tables.get(session.current())
        if tables is None:
            raise mistake("depart", "this member has opened no table")
        tables.core.depart()

    @property
    def clock(self) -> int:
        """Units of work that this member has completed."""
        return self._core.clock

    def read(self, keys, out: np.ndarray | None = None) -> np.ndarray:
        """(*shape of keys, dim), or into `out`, contiguous and of the table's type. Waits until the consistency allows it; `age` then is the
        least age of these rows: they hold everybody's increments of all clocks below it."""
        if out is not None:
            self.age = self._core.read_into(keys_of(keys), out)
            return out
        values, self.age = self._core.read(keys_of(keys))
        return values

    def view(self, keys) -> "_C.ViewF32":
        """The rows that read() would give, where they lie: view[i], that of the i-th key, is an array that nobody may write, and no copy. Of `view`: len(); `age`, for
        each row its age; `clock`, this member's when it read, so that a row is clock - age clocks behind; `copied`, how many rows are copies after all, for they
        have increments of this member that no server has counted in. np.asarray(view), (rows, dim), is a copy unless they lie one behind the other. All
        of it stays as it is, whatever comes, while the view or an array of it lives, also behind the end of the table (docs/tables.md, Views)."""
        return self._core.view(keys_of(keys))

    def intend(self, keys, clocks: int | None = None) -> None:
        """These rows will be read: ask for them now. clocks: in how many of this member's clocks after the present one, and not later: then they are
        no longer pushed to it, nor kept. Without it nobody knows for how long (docs/tables.md, Which rows are pushed)."""
        if clocks is not None and (not isinstance(clocks, int) or clocks < 0):
            raise mistake(f"table {self.name}", f"rows are intended for a number of clocks from 0 on, not {clocks!r}")
        self._core.intend(keys_of(keys), clocks)

    def _rows(self, keys: np.ndarray, values) -> np.ndarray:
        """`values` as this table's type, (*shape of keys, dim); the last may be left out where dim is 1."""
        values = np.asarray(values)
        if self.dtype.kind == "i" and values.dtype.kind not in "iub":
            raise mistake(f"table {self.name}", f"{values.dtype} values for rows of {self.dtype}")
        if values.shape != (*keys.shape, self.dim) and not (self.dim == 1 and values.shape == keys.shape):
            raise mistake(f"table {self.name}", f"values of shape {values.shape} for rows of shape {(*keys.shape, self.dim)}")
        if self.dtype.kind == "i" and values.size > 0:
            held = np.iinfo(self.dtype)
            for value in (values.min(), values.max()):
                if not held.min <= int(value) <= held.max:
                    raise mistake(f"table {self.name}", f"{value} is no {self.dtype}")
        if values.dtype.kind not in "iubf":
            raise mistake(f"table {self.name}", f"{values.dtype} values for rows of {self.dtype}")
        return values.astype(self.dtype, copy=False)

    def add(self, keys, values) -> None:
        """Adds values[i] to the row of keys[i]; keys may repeat. Read by this member at once, by others after tick(). Waits only where
        the consistency bounds values."""
        keys = keys_of(keys)
        self._core.add(keys, self._rows(keys, values))

    def assign(self, keys, values) -> None:
        """New values, out of time; others see them when their copies are renewed, or after a barrier."""
        keys = keys_of(keys)
        self._core.assign(keys, self._rows(keys, values))

    def define(self, name: str, function) -> None:
        """By all members alike: a function that servers run on rows of this table, function(keys, rows, argument), of arrays (n,), (n, dim) and of
        numbers. What it leaves in `rows` becomes their values; it returns an array whose first axis has n, or None. Ends with a barrier, so that
        anybody may call it. It runs on a thread of its own and must not use tables."""
        if not isinstance(name, str) or not name or not callable(function):
            raise mistake(f"table {self.name}", f"a function has a name and can be called, not {name!r} and {function!r}")
        if self._tables.has_servers:
            raise mistake("define", "members that only serve never come to it", "start without --servers")
        self._core.define(self._tables.core, name, function)
        self.barrier()

    def call(self, name: str, keys=None, argument=()) -> np.ndarray:
        """What that function returns for these rows, (*shape of keys, k), as float64 (int64 of integers). Without keys: the sum of it over all rows that
        servers have, (k,). It sees settled rows, of an age that read() would bear; `age` then tells it. Every table has "sum_of_squares", "norm" (of
        floats), "count" and "top": the columns of the argument's number of largest values by magnitude, and these (docs/tables.md)."""
        if not isinstance(name, str):
            raise mistake(f"table {self.name}", f"a function is called by its name, not {name!r}")
        wide = np.int64 if self.dtype.kind == "i" else np.float64
        argument = np.atleast_1d(np.asarray(argument, wide))
        keys = None if keys is None else keys_of(keys)
        if keys is not None and keys.size == 0:
            return np.empty((*keys.shape, 0), wide)
        values, self.age = self._core.call(name, keys, argument)
        return values if keys is None else values.reshape(*keys.shape, -1)

    def rule(self, rule: str) -> None:
        """By one member: another rate of the same rule, for all gradients from its clock on."""
        self._core.rule(rule)

    def snapshot(self, path) -> int:
        """By one member: writes every row as of this member's clock, with the rule's state, to the folder `path`, and returns the clock. Each
        server writes its own part when all members have completed that clock; nobody else waits (docs/tables.md, Snapshots)."""
        return self.snapshot_begin(path).wait()

    def snapshot_begin(self, path) -> "_C.Snapshot":
        """The same without waiting: of what it returns, wait() makes it the snapshot at `path`; `is_written` says whether that would wait."""
        return self._core.snapshot_begin(os.fspath(path))

    def restore(self, path) -> int:
        """By all members: the table is as the snapshot at `path`, to the bit, on any number of members. Returns its clock, at which all go on."""
        return self._core.restore(os.fspath(path))

    def export(self, path) -> int:
        """By one member: the rows of a snapshot as one file, .safetensors, .npz or .csv, which all fit in its memory. Returns how many. It must
        see what all servers write beside `path`."""
        return table_files.export(self, os.fspath(path))

    def import_(self, path) -> int:
        """By one member: assigns the rows of such a file, and returns how many. Others read them after a barrier."""
        return table_files.import_(self, os.fspath(path))

    @property
    def dropped(self) -> int:
        """Clocks of this member that came too late, with what it had added in them (bsp:K)."""
        return self._core.dropped

    def tick(self) -> None:
        """A unit of work is complete. Waits only if this member is too far ahead of the slowest."""
        self._core.tick()

    def barrier(self) -> None:
        """By all members: what anybody added before is in what everybody reads, and all are at the clock of who was furthest.
        Who waits here holds nobody back."""
        barrier([self])
