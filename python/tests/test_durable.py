"""Files that are brought to the disk: past the page cache where that is possible, and their folders."""

import errno
import os

import pytest
import safetensors.torch
import torch
from torch import nn

import shoal
from shoal import durable


def constant(value):
    net = nn.Linear(2, 3)
    nn.init.constant_(net.weight, value)
    return net


class NoDirect:
    """Stands for the module os on a file system without O_DIRECT: tmpfs of older kernels says so at open, others at the first write."""

    def __init__(self, call):
        self._call, self.refused = call, 0

    def __getattr__(self, name):
        return getattr(os, name)

    def open(self, path, flags, *mode):
        self._direct = flags & os.O_DIRECT
        self._refuse("open")
        return os.open(path, flags, *mode)

    def write(self, file, data):
        self._refuse("write")
        return os.write(file, data)

    def _refuse(self, call):
        if self._direct and call == self._call:
            self.refused += 1
            raise OSError(errno.EINVAL, "Invalid argument")


@pytest.mark.parametrize("call", ["open", "write"])
def test_a_file_system_without_direct_writes_gets_the_same_file(tmp_path, monkeypatch, call):
    stand_in, file = NoDirect(call), tmp_path / "it.safetensors"
    net = constant(5)
    shoal.save(file, net, odd=torch.arange(7, dtype=torch.uint8))
    before = file.stat().st_size
    monkeypatch.setattr(durable, "os", stand_in)
    shoal.save(file, net, odd=torch.arange(7, dtype=torch.uint8))
    assert stand_in.refused == 1 and file.stat().st_size == before
    nn.init.constant_(net.weight, 0)
    assert torch.equal(shoal.load(file, net)["odd"], torch.arange(7, dtype=torch.uint8)) and torch.all(net.weight == 5)


@pytest.mark.parametrize("bytes_of_it", [0, 1, 4095, 4096, 4097, 1 << 20])
def test_what_is_written_directly_is_whole_blocks_in_memory_and_in_the_file(tmp_path, monkeypatch, bytes_of_it):
    written, file = [], tmp_path / "it.safetensors"
    real = durable.write_direct
    monkeypatch.setattr(durable, "write_direct", lambda path, pieces, size: written.append((pieces, size)) or real(path, pieces, size))
    values = torch.randint(0, 256, (bytes_of_it,), dtype=torch.uint8)
    shoal.save(file, constant(1), values=values)
    (pieces, size), = written
    for piece in pieces:
        address = torch.frombuffer(piece, dtype=torch.uint8).data_ptr()
        assert address % durable.BLOCK == 0 and len(piece) % durable.BLOCK == 0
    assert file.stat().st_size == size <= sum(map(len, pieces))
    assert torch.equal(safetensors.torch.load_file(file)["state.values"], values)


def test_every_new_level_of_a_folder_is_brought_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(durable, "_sync_folder", synced.append)
    durable.make_folder(str(tmp_path / "a" / "b" / "c"))
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert synced == [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]


def test_a_link_is_followed_and_what_is_no_file_stays_what_it_is(tmp_path):
    net, file, link, pipe = constant(1), tmp_path / "it.safetensors", tmp_path / "link.safetensors", tmp_path / "pipe"
    link.symlink_to(file)
    shoal.save(link, net)
    assert link.is_symlink() and file.is_file()
    os.mkfifo(pipe)
    for no_file in (pipe, tmp_path):
        with pytest.raises(shoal.Error, match=f"{no_file}: cannot be written: is no file"):
            durable.write(str(no_file), [b"x"])
    assert pipe.is_fifo()
