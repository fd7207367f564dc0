"""save() and load(): what comes back, on how many members, and what is left of a save that was killed."""

import json
import os
import re
import signal
import time
import types

import pytest
import safetensors.torch
import torch
from torch import nn

import shoal
import tiny
from shoal import checkpoint, durable
from shoal import checkpoints as checkpoints_of


FILE, FOLDER = "it.safetensors", "it"


class Dropping(nn.Module):
    """Draws random numbers in every step, has a buffer, and a weight that lies channels-last."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.norm, self.last = nn.Linear(6, 32), nn.BatchNorm1d(8), nn.Linear(32, 3)
        self.conv = nn.Conv2d(2, 8, 2).to(memory_format=torch.channels_last)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(self.first(x).view(-1, 2, 4, 4)).flatten(2).mean(2)))
        return self.last(nn.functional.dropout(x.repeat(1, 4), 0.3))


def make(seed):
    net = Dropping(seed)
    return shoal.data_parallel(net, torch.optim.Adam(net.parameters(), lr=1e-2))


def train(net, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()


def everything(net, optimizer):
    moments = [v for state in optimizer.state_dict()["state"].values() for v in state.values()]
    return tiny.values(net) + [m.clone() for m in moments] + [torch.get_rng_state()]


def continued(folder, stop):
    net, optimizer = make(1)
    torch.manual_seed(100 + shoal.rank())
    train(net, optimizer, range(stop))
    checkpoints = shoal.Checkpoints(folder)
    checkpoints.save(stop, net, optimizer, step=stop)
    train(net, optimizer, range(stop, stop + 4))
    uninterrupted = everything(net, optimizer), net.plan
    net, optimizer = make(2)
    assert checkpoints.load(net, optimizer) == {"step": stop}
    train(net, optimizer, range(stop, stop + 4))
    return tiny.equal(everything(net, optimizer), uninterrupted[0]), net.plan == uninterrupted[1]


def test_a_resumed_run_has_the_bits_of_one_that_was_not_interrupted(pool, tmp_path):
    # Before the plan is chosen (after three steps) it is chosen anew: from other measurements, maybe another one.
    assert all(same for same, _ in pool(2).run(continued, str(tmp_path / "early"), 1))
    assert pool(3).run(continued, str(tmp_path / "late"), 5) == [(True, True)] * 3


def saved(path, disks):
    path = f"{path}/disk{shoal.rank()}/it" if disks else path
    net, optimizer = make(1)
    train(net, optimizer, range(2))
    shoal.save(path, net, optimizer, step=2, nested={"a": [1, None, (2.5, "x")], 3: torch.arange(4)})
    return everything(net, optimizer)[:-1]


def loaded(path, disks=False):
    path = f"{path}/disk{shoal.rank()}/it" if disks else path
    net, optimizer = make(5)
    state = shoal.load(path, net, optimizer)
    assert state["step"] == 2 and state["nested"]["a"] == [1, None, (2.5, "x")] and torch.equal(state["nested"][3], torch.arange(4))
    return everything(net, optimizer)[:-1]


@pytest.mark.parametrize("name", ["folder", "file.safetensors"])
def test_saved_by_four_loaded_by_two_and_by_one(pool, tmp_path, name):
    path = str(tmp_path / name)
    expected = pool(4).run(saved, path, False)[0]
    for values in pool(2).run(loaded, path):
        assert tiny.equal(values, expected)
    assert tiny.equal(loaded(path), expected)


def test_the_files_are_plain_safetensors(pool, tmp_path):
    expected = pool(4).run(saved, str(tmp_path / "folder"), False)[0]
    index = json.loads((tmp_path / "folder" / "index.json").read_text())
    files = {name: safetensors.torch.load_file(tmp_path / "folder" / name) for name in set(index["weight_map"].values())}
    assert len(files) == 4  # each member wrote its share
    read = {name: files[file][name] for name, file in index["weight_map"].items()}
    net = Dropping(1)
    assert tiny.equal([read[f"model.{name}"] for name in net.state_dict()], expected[:len(net.state_dict())])


def test_every_disk_has_a_whole_checkpoint_and_who_lost_it_gets_it_from_another(pool, tmp_path):
    expected = pool(3).run(saved, str(tmp_path), True)[0]
    for disk in range(3):
        assert tiny.equal(loaded(str(tmp_path / f"disk{disk}" / "it")), expected)
    index = tmp_path / "disk0" / "it" / checkpoint.INDEX
    index.write_text("{")
    for values in pool(3).run(loaded, str(tmp_path), True):
        assert tiny.equal(values, expected)
    index.unlink()
    for values in pool(3).run(loaded, str(tmp_path), True):
        assert tiny.equal(values, expected)


@pytest.mark.parametrize("seen", [[[0, 1], [1]], [[0], [0, 1]], [[0, 1], [0, 1, 2], [1, 2]], [[], [1]], [[0, 2], [1]]])
def test_members_whose_views_of_a_folder_do_not_agree_are_refused(seen):
    checkpoint.require_groups("there", dict(enumerate([[0, 2], [1], [0, 2]])))
    with pytest.raises(shoal.Error, match="there: rank [01] sees the files of ranks "):
        checkpoint.require_groups("there", dict(enumerate(seen)))


def saved_apart(path):
    """Under one name rank 0's disk holds an older save than rank 1's, whose clock is an hour late."""
    clock = time.time
    time.time = (lambda: clock() - 3600) if shoal.rank() == 1 else clock
    try:
        return save_apart(path)
    finally:
        time.time = clock


def save_apart(path):
    mine = f"{path}/disk{shoal.rank()}/it"
    net, optimizer = make(1)
    for value, ranks in ((1, [0, 1]), (2, [1])):
        nn.init.constant_(net.module.last.bias, value)
        shoal.save(mine if shoal.rank() in ranks else f"{path}/elsewhere{shoal.rank()}", net, optimizer, value=value)
    return shoal.load(mine, net, optimizer)["value"], net.module.last.bias.tolist()


def test_disks_that_hold_different_saves_under_one_name_do_not_part_the_members(pool, tmp_path):
    assert pool(2).run(saved_apart, str(tmp_path)) == [(2, [2.0] * 3)] * 2


# --- killed while it saves


class Killing:
    """Stands for the module os: the process is killed before the n-th call that changes the disk."""

    CALLS = {"open", "write", "ftruncate", "fsync", "close", "rename", "unlink", "rmdir", "mkdir"}

    def __init__(self, n):
        self._left = n

    def __getattr__(self, name):
        if name in self.CALLS:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(os, name)


def killed_at(n, work) -> bool:
    """Whether a child that does `work` was killed before it was done."""
    child = os.fork()
    if child == 0:
        try:
            durable.os = Killing(n)
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def small(value):
    net = nn.Linear(2, 3)
    nn.init.constant_(net.weight, value)
    return net


def writers(value, members):
    made = []
    for rank in range(members):
        here = types.SimpleNamespace(rank=rank, size=members, id=f"run{value}", generation=0, is_lost=lambda _: False,
                                     require_everybody=lambda: None)
        made.append(checkpoint.Writer(here, list(range(members)), behind=0.0))
        made[-1].take(small(value), None, {"value": value})
    return made


@pytest.mark.parametrize("form", ["file.safetensors", "folder", "steps"])
def test_killed_at_any_moment_of_a_save_the_one_before_is_whole(tmp_path, form):
    shoal.init()

    def save(value):
        if form == "steps":
            checkpoints = shoal.Checkpoints(tmp_path / form)
            checkpoints.save(value, small(value), value=value)
            checkpoints.flush()
        elif form == "folder":
            for writer in reversed(writers(value, 3)):
                writer.write_folder(str(tmp_path / form), 10)
        else:
            shoal.save(tmp_path / form, small(value), value=value)

    def newest():
        net = nn.Linear(2, 3)
        if form == "steps":
            state = shoal.Checkpoints(tmp_path / form).load(net)
        else:
            state = shoal.load(tmp_path / form, net)
        assert torch.all(net.weight == state["value"])
        return state["value"]

    for value in (1, 2, 3):
        save(value)
    n, before = 0, 3
    while killed_at(n, lambda: save(before + 1)):
        found = newest()
        assert found in (before, before + 1)
        before, n = found, n + 1
    assert n >= 6 and newest() == before + 1
    save(before + 2)
    assert newest() == before + 2
    leftovers = [file for _, _, files in os.walk(tmp_path) for file in files if file.endswith(".aside")]
    assert len(leftovers) <= 1  # the last killed one's, in its own folder


# --- what cannot be loaded


def rewrite(file, change):
    """The header of a safetensors file, changed."""
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"]["shoal"] = json.dumps(change(json.loads(header["__metadata__"]["shoal"])))
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def part(folder):
    return next(folder.glob("part-*"))


def replace_by_part(file):
    shoal.save(file.parent / FOLDER, small(1))
    file.write_bytes(part(file.parent / FOLDER).read_bytes())


def with_tree(file, **changed):
    rewrite(file, lambda header: header | {"tree": header["tree"] | changed})


MOMENTS = {"state": {"$pairs": [[0, {"momentum_buffer": {"$tensor": "model.bias"}}]]}, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}


@pytest.mark.parametrize("name, spoil, words", [
    (FILE, lambda f: f.unlink(), "{f}: there is no checkpoint"),
    (FILE, lambda f: f.write_bytes(f.read_bytes()[:-1]), "{f}: damaged, cut short or no safetensors file ("),
    (FILE, lambda f: f.write_bytes(f.read_bytes()[:100]), "{f}: damaged, cut short or no safetensors file ("),
    (FILE, lambda f: f.write_bytes(b""), "{f}: damaged, cut short or no safetensors file ("),
    (FILE, lambda f: f.write_bytes(b"PK\x03\x04 a pickle of torch.save"), "{f}: damaged, cut short or no safetensors file ("),
    (FILE, lambda f: safetensors.torch.save_file({"weight": torch.zeros(3, 2)}, f), "{f}: it is no checkpoint of Shoal"),
    (FILE, lambda f: rewrite(f, lambda h: h | {"version": 2}), "{f}: a checkpoint of version 2, this Shoal reads version 1"),
    (FILE, lambda f: shoal.save(f, nn.Linear(2, 4)), "{f}: weight is float32 [4, 2] there and float32 [3, 2] in this model"),
    (FILE, lambda f: shoal.save(f, small(1).double()), "{f}: weight is float64 [3, 2] there and float32 [3, 2] in this model"),
    (FILE, lambda f: shoal.save(f, nn.Linear(2, 3, bias=False)), "{f}: it holds no bias (it is of another model)"),
    (FILE, lambda f: shoal.save(f, nn.Bilinear(2, 2, 3)), "{f}: weight is float32 [3, 2, 2] there"),
    (FILE, lambda f: shoal.save(f, nn.Sequential(small(1))), "{f}: it holds no weight"),
    (FILE, lambda f: shoal.save(f, small(1)), "{f}: it holds no optimizer (load it with the model alone)"),
    (FILE, lambda f: shoal.save(f, small(1), torch.optim.Adam(small(1).parameters())), "{f}: it holds the state of Adam, the optimizer is SGD"),
    (FILE, lambda f: shoal.save(f, small(1), torch.optim.SGD([small(1).weight])), "{f}: its optimizer has parameter groups of [1], this one of [2]"),
    (FILE, replace_by_part, "{f}: a part of a checkpoint (load the folder in which it lies)"),
    (FILE, lambda f: rewrite(f, lambda h: [h]), "{f}: it is no checkpoint of Shoal"),
    (FILE, lambda f: rewrite(f, lambda h: h | {"time": "now"}), "{f}: damaged: it names no time"),
    (FILE, lambda f: rewrite(f, lambda h: h | {"own": None}), "{f}: damaged: it names no own"),
    (FILE, lambda f: rewrite(f, lambda h: h | {"own": {"torch": 1, "python": 2}}), "{f}: damaged: no save writes this (TypeError: "),
    (FILE, lambda f: rewrite(f, lambda h: h | {"tree": {}}), "{f}: damaged: no save writes this (KeyError: 'model')"),
    (FILE, lambda f: with_tree(f, state={"$tuple": 3}), "{f}: damaged: its values are in no order that a save writes ("),
    (FILE, lambda f: with_tree(f, optimizer=3), "{f}: damaged: no save writes this (TypeError: "),
    (FILE, lambda f: with_tree(f, optimizer=MOMENTS),
     "{f}: momentum_buffer of the optimizer's parameter 0 is float32 [3] there, the parameter float32 [3, 2] (it is of another model)"),
    (FOLDER, lambda f: (f / "index.json").unlink(), "{f}: there is no checkpoint"),
    (FOLDER, lambda f: (f / "index.json").write_text("{"), "{f}/index.json: damaged: it is no JSON"),
    (FOLDER, lambda f: (f / "index.json").write_text('{"weight_map": {}}'), "{f}/index.json: it is no checkpoint of Shoal"),
    (FOLDER, lambda f: (f / "index.json").write_text('{"format": "shoal checkpoint", "version": 1}'), "{f}/index.json: damaged: it names no save"),
    (FOLDER, lambda f: (f / "index.json").write_text((f / "index.json").read_text().replace('"part-', '"../part-')),
     "{f}/index.json: damaged: it names no parts"),
    (FOLDER, lambda f: (f / "index.json").write_text('{"format": "shoal checkpoint", "version": 7}'),
     "{f}/index.json: a checkpoint of version 7, this Shoal reads version 1"),
    (FOLDER, lambda f: part(f).unlink(), "{f}/part-"),
    (FOLDER, lambda f: part(f).write_bytes(part(f).read_bytes()[:-4]), "{f}/part-"),
])
def test_what_is_no_checkpoint_of_this_model_gives_one_line_and_changes_nothing(tmp_path, name, spoil, words):
    path = tmp_path / name
    net = small(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    shoal.save(path, net, optimizer)
    spoil(path)
    nn.init.constant_(net.weight, 7)
    with pytest.raises(shoal.Error) as refused:
        shoal.load(path, net, optimizer)
    line = str(refused.value)
    assert line.startswith(words.format(f=path)) and "\n" not in line
    assert refused.value.exit_code == 2
    assert torch.all(net.weight == 7)


@pytest.mark.parametrize("state, words", [
    ({"x": object()}, "checkpoint: state.x: a object cannot be saved (tensors, numbers, text, lists and dicts can)"),
    ({"x": [torch.zeros(2).to_sparse()]}, "checkpoint: state.x.0: a Tensor of layout torch.sparse_coo cannot be saved"),
])
def test_what_cannot_be_saved_is_named(tmp_path, state, words):
    with pytest.raises(shoal.Error, match=re.escape(words)) as refused:
        shoal.save(tmp_path / FILE, small(1), **state)
    assert refused.value.exit_code == 2 and not (tmp_path / FILE).exists()


# --- while training goes on


def test_what_is_saved_is_the_state_at_the_call_and_the_newest_two_are_kept(tmp_path):
    net = small(0)
    checkpoints = shoal.Checkpoints(tmp_path / "them")
    assert checkpoints.load(net) is None
    for step in range(1, 6):
        nn.init.constant_(net.weight, step)
        checkpoints.save(step, net, step=step)
        nn.init.constant_(net.weight, -1)  # while it is written
    assert checkpoints.load(net) == {"step": 5} and torch.all(net.weight == 5)
    assert sorted(os.listdir(tmp_path / "them")) == ["step-00000004", "step-00000005"]


def test_a_folder_that_cannot_be_used_is_the_users_to_mend(tmp_path):
    shoal.init()
    (tmp_path / "file").write_text("")
    no_folder = f"{tmp_path / 'file'} is no folder"
    for path, why in [(tmp_path / "file", no_folder), (tmp_path / "file" / "kept", no_folder), ("/proc/nope", "No such file or directory")]:
        with pytest.raises(shoal.Error) as refused:
            shoal.Checkpoints(path)
        assert str(refused.value) == f"{path}: cannot be made: {why} (name a folder that every member may write)"
        assert refused.value.exit_code == 2


def test_a_checkpoint_that_cannot_be_written_is_told_once(tmp_path):
    checkpoints = shoal.Checkpoints(tmp_path)
    (tmp_path / "step-00000001").write_text("a file where the folder should be")
    checkpoints.save(1, small(1))
    with pytest.raises(shoal.Error) as failed:
        checkpoints.flush()
    assert str(failed.value).startswith(f"{tmp_path}/step-00000001: cannot be made: ") and failed.value.exit_code == 1
    checkpoints.save(2, small(2))
    checkpoints.flush()
    assert checkpoints.newest() == 2


def test_what_the_disk_says_while_old_ones_are_removed_is_told_too(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(5, "Input/output error")

    checkpoints = shoal.Checkpoints(tmp_path)
    monkeypatch.setattr(checkpoints_of, "_remove_old", refuse)
    checkpoints.save(1, small(1))
    with pytest.raises(shoal.Error, match="step-00000001: cannot be written: Input/output error"):
        checkpoints.flush()
