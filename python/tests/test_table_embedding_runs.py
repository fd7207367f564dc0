"""Embeddings over tables in whole runs: rows on disk, the example, beside DistributedDataParallel."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pool import PATIENCE, launch

ROOT = Path(__file__).parents[2]


def output_of(members, command, folder, variables=None) -> str:
    run = launch(members, [sys.executable, *command], variables, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, output
    return output


LARGE = """
import os, sys
import torch, shoal
from torch.utils.data import DataLoader

shoal.init()
table = shoal.Table("rows", 256, consistency="bsp", rule="adagrad:0.1", initial=shoal.Initial.uniform(-1, 1))
embedding = shoal.nn.TableEmbedding(table)
words = [f"word {number}" for number in range(shoal.rank(), 12000, shoal.size())] * 2   # each twice
for some in DataLoader(words, 1000, num_workers=2):
    embedding(some).pow(2).sum().backward()
    shoal.nn.step(embedding)
table.barrier()
lines = open("/proc/self/maps").read()
assert (os.environ.get("SHOAL_COLD_ROWS") is None) == (".shoal-rows-" not in lines)
with torch.no_grad():
    rows = embedding(words[:1000])
with open(f"rows-{shoal.rank()}", "wb") as file:
    file.write(rows.numpy().tobytes())
table.barrier()
"""


def test_rows_that_lie_on_disk_train_to_the_same_bits(tmp_path):
    """12,000 rows of 1 KB and as much state, ids from the processes of a data loader."""
    (tmp_path / "large.py").write_text(LARGE)
    rows = []
    for variables in ({}, {"SHOAL_COLD_ROWS": str(tmp_path)}):
        output_of(2, ["large.py"], tmp_path, variables)
        rows.append([(tmp_path / f"rows-{rank}").read_bytes() for rank in range(2)])
    assert rows[0] == rows[1] and rows[0][0] != rows[0][1]


def test_the_example_learns_alike_on_any_number_of_members(tmp_path):
    generator = torch.Generator().manual_seed(1)
    liked, pairs = torch.rand(30, generator=generator) * 4, torch.randint(0, 30, (3000, 2), generator=generator)
    with gzip.open(tmp_path / "r.csv.gz", "wt") as file:
        file.write("user,item,rating\n" + "".join(f"{user},{item},{1 + liked[item]:.2f}\n" for user, item in pairs.tolist()))
    errors = []
    for members in (1, 2):
        output = output_of(members, [str(ROOT / "examples" / "ratings.py"), "r.csv.gz", "--batch", "60"], tmp_path)
        errors.append([float(line.split()[-1]) for line in output.splitlines() if "held-out RMSE" in line])
    assert len(errors[0]) == 3 and errors[0][-1] < 0.3
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


BESIDE_DDP = """
import torch, shoal
from torch import nn
shoal.init_process_group()
torch.set_num_threads(1)

def train(wrap, after):
    torch.manual_seed(4)
    table = shoal.Table(wrap.__name__, 4, consistency="bsp", rule="sgd:0.1", initial=shoal.Initial.normal(0, 1))
    net = nn.Sequential(shoal.nn.TableEmbedding(table), nn.Flatten(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    model = wrap(net, optimizer)
    for step in range(5):
        optimizer.zero_grad()
        model(torch.tensor([[1 + shoal.rank(), 2], [3, step]])).pow(2).sum().backward()
        optimizer.step()
        after(net)
    rows = torch.from_numpy(table.read(range(6)))
    table.barrier()
    return rows

def ddp(net, optimizer):
    return nn.parallel.DistributedDataParallel(net)

def ours(net, optimizer):
    return shoal.data_parallel(net, optimizer)[0]

torch.testing.assert_close(train(ddp, shoal.nn.step), train(ours, lambda net: None))
"""


def test_beside_ddp_a_step_is_explicit(tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE_DDP)
    output_of(2, ["beside.py"], tmp_path)
