"""save() and load(): a training run's state as files that any number of members can go on from.

A path that ends in .safetensors is one file, written by rank 0. Any other path is a folder: members that see the same folder share
the work, each writes a part, and the index that makes them a checkpoint is renamed into place last. Members whose folder is on
another disk form another such group, so that every disk has a whole checkpoint and the loss of a machine costs none. At the start
whoever lacks the checkpoint gets it from a member that has it.
"""

import json
import os
import sys
import time

from . import durable, session, tensor_file, training_state
from .errors import Error, mistake

VERSION = 1
INDEX = "index.json"
_FORMAT = "shoal checkpoint"
_LOOK_EACH = 0.02  # seconds between two looks for the others' parts

_saves = 0  # by this process; with the id of this start of the job it names a save


def save(path, model, optimizer=None, /, **state) -> None:
    """Writes model, optimizer and `state` (tensors, numbers, text, lists, dicts; the same on all members), and what each member has for
    itself: random numbers, what a lossy way has not yet sent, its local steps. Every member calls it between two steps. What was there under this name
    stays until the new one is whole."""
    session.flush()
    training_state.level(model)
    path, here = os.path.abspath(path), session.current()
    count_save()
    is_file = path.endswith(".safetensors")
    if is_file and here.rank != 0:
        return
    writer = Writer(here, *(([0], 0.0) if is_file else sharers(path)))
    writer.take(model, optimizer, state)
    if is_file:
        writer.write_file(path)
    else:
        writer.write_folder(path, session.patience())


def count_save() -> None:
    """Every member, at every save: so all call it by the same name."""
    global _saves
    _saves += 1


def saves() -> int:
    return _saves


def go_on_after(count: int) -> None:
    """Of a process that comes to others which have saved so often."""
    global _saves
    _saves = count


def load(path, model, optimizer=None, /) -> dict:
    """Puts the saved values into model and optimizer and returns `state`. Every member calls it, before training; the number of
    members may differ from that which saved."""
    path, here = os.path.abspath(path), session.current()
    here.gather(b"", "arrival at the checkpoint")  # who saved it just now has renamed it
    newest = agree(here, lambda: identity(path))
    if newest is None:
        raise mistake(path, "there is no checkpoint")
    return load_from(path, newest[1], model, optimizer)


def identity(path: str) -> list | None:
    """When the checkpoint there was written, by the clock of that run's rank 0, and the name of its save, which is the same on all
    disks that it wrote to. None: there is none."""
    if not os.path.exists(path if path.endswith(".safetensors") else os.path.join(path, INDEX)):
        return None
    header = _Source(path).header()
    return [header["time"], header["save"]]


def agree(here, look) -> tuple[list, list[int]] | None:
    """The newest of what members find on their disks by `look`, and who has it. A disk that was away may hold one of the same step or
    path that is another's; one that is damaged does no harm where another is whole."""
    found = damage = None
    try:
        found = look()
    except Error as error:
        damage = error
    answers = [json.loads(answer) for answer in here.gather(json.dumps([found, damage and str(damage)]).encode(), "search for the checkpoint")]
    newest = max((theirs for theirs, _ in answers if theirs), default=None)
    if newest is not None:
        if damage is not None:
            print(f"shoal: rank {here.rank} takes the checkpoint from another member's disk: {damage}", file=sys.stderr, flush=True)
        return newest, [rank for rank, (theirs, _) in enumerate(answers) if theirs and theirs[-1] == newest[-1]]
    if damage is not None:
        raise damage
    for rank, (_, line) in enumerate(answers):
        if line is not None:
            raise Error(f"rank {rank}: {line}", "invalid_argument", 2)
    return None


def load_from(path: str, holders: list[int], model, optimizer) -> dict:
    """As load(), where the members `holders` have the checkpoint."""
    here = session.current()
    source = _Source(path)
    if len(holders) < here.size:
        source.send(here, holders)
    everything, members, own = source.read(here.rank)
    session.flush()
    if members != here.size:
        own = None
    state = training_state.put_back(everything, own, path, model, optimizer)
    if members == here.size:
        training_state.continue_exchange(everything, own, model, optimizer)
    return state


def sharers(folder: str) -> tuple[list[int], float]:
    """The ranks whose files in `folder` this member sees, by trying: they share a disk. And how many seconds this member's clock is
    behind the first one's. All members that are left ask together."""
    here = session.current()
    mark = f".seen-{here.id}-"
    own = os.path.join(folder, f"{mark}{here.rank}")
    try:  # nothing is lost yet: the user can name another
        durable.make_folder(folder)
        with durable.told(folder, "cannot be written"):
            open(own, "w").close()
    except Error as error:
        raise Error(f"{error} (name a folder that every member may write)", "invalid_argument", 2) from None
    behind = float(here.gather(str(time.time()).encode(), "comparison of clocks")[0]) - time.time()
    with durable.told(folder, "cannot be read"):
        seen = {int(name.removeprefix(mark)) for name in os.listdir(folder) if name.startswith(mark)}
    told = [json.loads(ranks) for ranks in here.gather(json.dumps(sorted(seen)).encode(), "comparison of folders")]
    durable.remove(own)
    everybody = dict(zip(here.members, told))
    require_groups(folder, everybody)
    return everybody[here.rank], 0.0 if here.place == 0 else behind


def require_groups(folder: str, seen: dict[int, list[int]]) -> None:
    """Who sees each other sees the same; else two groups would write one checkpoint. `seen`: by rank, the same here as on
    all other members, so that all of them refuse."""
    for rank, theirs in seen.items():
        for other in [rank, *theirs]:
            if rank not in theirs or seen.get(other) != theirs:
                raise Error(f"{folder}: rank {rank} sees the files of ranks {theirs} there, rank {other} those of {seen.get(other)} "
                            "(the file system shows its members different things: start again, or name another folder)", "io", 1)


class MemberLost(Exception):
    """While a checkpoint was written: it will never be whole. The one before it stays."""


class Writer:
    """This member's part of one checkpoint after another: taken at a step, written when there is time for it, in the same memory."""

    def __init__(self, here, group: list[int], behind: float):
        self._here, self._rank, self._size = here, here.rank, here.size
        self._group = group
        self._behind = behind
        self._copy = tensor_file.HostCopy()

    def take(self, model, optimizer, state: dict) -> None:
        """Everything is as it is now, whatever training does afterwards."""
        save = f"{self._here.id}-{_saves}"
        self._generation = self._here.generation
        self._parts = {rank: f"part-{rank}-of-{self._size}-{save}.safetensors" for rank in self._group}
        tensors = {}
        everything = training_state.collect(model, optimizer, state)
        self._tree = {name: training_state.flatten(name, value, tensors) for name, value in everything.items()}
        sizes = {name: t.numel() * t.element_size() for name, t in tensors.items()}
        self._shares = shares(sizes, len(self._group), training_state.of_one_member(model))
        mine = {name: tensors[name] for name in self._shares[self._group.index(self._rank)]}
        own = training_state.flatten("own", training_state.own_state(model), mine)
        self._header = {"version": VERSION, "save": save, "time": time.time() + self._behind, "members": self._size, "own": own}
        self._copy.take(mine)

    def write_file(self, path: str) -> None:
        durable.make_folder(os.path.dirname(path))
        self._copy.write(path, {"shoal": json.dumps(self._header | {"tree": self._tree})})

    def write_folder(self, folder: str, patience: float) -> None:
        """Rank by rank its part; the first of the group waits for the others' and makes them a checkpoint."""
        durable.make_folder(folder)
        self._copy.write(os.path.join(folder, self._parts[self._rank]), {"shoal": json.dumps(self._header)})
        if self._rank != self._group[0]:
            return
        self._wait_for_parts(folder, patience)
        files = {name: self._parts[rank] for rank, share in zip(self._group, self._shares) for name in share}
        index = self._header | {"format": _FORMAT, "parts": self._parts, "tree": self._tree, "weight_map": files}
        del index["own"]
        durable.write(os.path.join(folder, INDEX), [json.dumps(index).encode()])
        for name in os.listdir(folder):  # of the checkpoint that this one has replaced, or of one that was never whole
            if name.startswith("part-") and name not in self._parts.values():
                durable.remove(os.path.join(folder, name))

    def _wait_for_parts(self, folder: str, patience: float) -> None:
        deadline = time.monotonic() + patience
        while missing := [rank for rank, name in self._parts.items() if not os.path.exists(os.path.join(folder, name))]:
            self._here.require_everybody()
            if self._here.generation != self._generation or any(map(self._here.is_lost, missing)):
                raise MemberLost(f"{folder}: a member was lost before it had written its part")
            if time.monotonic() > deadline:
                raise Error(f"{folder}: no part of rank {missing[0]} within {patience:g} s (every member must save)", "timeout", 1)
            time.sleep(_LOOK_EACH)


def shares(sizes: dict[str, int], members: int, of_first: str | None = None) -> list[list[str]]:
    """Which tensors each member writes: the largest first, to whom has least; the first those whose names begin with `of_first`. The same
    on all members."""
    names, load = [[] for _ in range(members)], [0] * members
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        least = 0 if of_first is not None and name.startswith(of_first) else load.index(min(load))
        names[least].append(name)
        load[least] += sizes[name]
    return names


class _Source:
    """A checkpoint to be read: on this disk, or as bytes that another member sent."""

    def __init__(self, path: str):
        self._path = path
        self._is_file = path.endswith(".safetensors")
        self._sent = None  # name -> bytes

    def send(self, here, holders: list[int]) -> None:
        """The first holder sends the files to all; who has them goes on reading its own."""
        source = holders[0]
        names = json.dumps(self._names()).encode() if here.rank == source else b""
        sent = {}
        for name in json.loads(here.broadcast(names, source, "the checkpoint's files")):
            data = self._bytes(name) if here.rank == source else b""
            pieces = session.broadcast_pieces(here, data, source, f"the checkpoint's {name}")
            if here.rank in holders:
                for _ in pieces:
                    pass
            else:
                sent[name] = b"".join(pieces)
        if here.rank not in holders:
            self._sent = sent

    def read(self, rank: int) -> tuple[dict, int, dict | None]:
        """(everything that all have alike, how many members saved it, what this rank alone had)"""
        if self._is_file:
            header, tensors = self._part(os.path.basename(self._path))
            if "tree" not in header:
                raise mistake(self._path, "a part of a checkpoint", "load the folder in which it lies")
            tree, own = header["tree"], header["own"] if rank == 0 else None
            return self._values(tree, tensors), header["members"], self._values(own, tensors)
        index = self._index()
        tensors, own = {}, None
        for part_of, name in index["parts"].items():
            header, of_part = self._part(name)
            if int(part_of) == rank:
                own = self._values(header["own"], of_part)
            tensors |= of_part
        return self._values(index["tree"], tensors), index["members"], own

    def header(self) -> dict:
        if not self._is_file:
            return self._index()
        return self._header(self._path, tensor_file.read_metadata(self._path))

    def _names(self) -> list[str]:
        return [os.path.basename(self._path)] if self._is_file else [INDEX, *self._index()["parts"].values()]

    def _place(self, name: str) -> str:
        return self._path if self._is_file else os.path.join(self._path, name)

    def _bytes(self, name: str) -> bytes:
        if self._sent is not None:
            return self._sent[name]
        try:
            with open(self._place(name), "rb") as file:
                return file.read()
        except OSError as error:
            raise Error(f"{self._place(name)}: cannot be read: {error.strerror}", "invalid_argument", 2) from None

    def _index(self) -> dict:
        where = self._place(INDEX)
        try:
            index = json.loads(self._bytes(INDEX))
        except ValueError:
            raise mistake(where, "damaged: it is no JSON") from None
        if not isinstance(index, dict) or index.get("format") != _FORMAT:
            raise mistake(where, "it is no checkpoint of Shoal")
        _require_known(where, index)
        try:
            good = "tree" in index and all(os.path.basename(name) == name and int(rank) >= 0 for rank, name in index["parts"].items())
        except (KeyError, AttributeError, TypeError, ValueError):
            good = False
        if not good:
            raise mistake(where, "damaged: it names no parts")
        return index

    def _part(self, name: str) -> tuple[dict, dict]:
        where = self._place(name)
        metadata, tensors = tensor_file.read(where, self._sent[name] if self._sent is not None else None)
        return self._header(where, metadata), tensors

    @staticmethod
    def _header(where: str, metadata: dict[str, str]) -> dict:
        try:
            header = json.loads(metadata["shoal"])
        except (KeyError, ValueError):
            raise mistake(where, "it is no checkpoint of Shoal", "another program's file is read with the package safetensors") from None
        _require_known(where, header)
        if not isinstance(header.get("own"), dict):
            raise mistake(where, "damaged: it names no own")
        return header

    def _values(self, tree, tensors: dict):
        try:
            return training_state.unflatten(tree, tensors)
        except KeyError as missing:
            raise mistake(self._path, f"it lacks {missing}") from None
        except (TypeError, ValueError) as error:
            raise mistake(self._path, f"damaged: its values are in no order that a save writes ({error})") from None


_KINDS = {"save": str, "time": (int, float), "members": int}  # of what every header has


def _require_known(where: str, header) -> None:
    if not isinstance(header, dict):
        raise mistake(where, "it is no checkpoint of Shoal")
    if header.get("version") != VERSION:
        raise mistake(where, f"a checkpoint of version {header.get('version')}, this Shoal reads version {VERSION}", "a newer Shoal reads it")
    for key, kind in _KINDS.items():
        if not isinstance(header.get(key), kind):
            raise mistake(where, f"damaged: it names no {key}")
