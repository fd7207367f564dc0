"""The recipes of examples/recipes with the real packages, against the same on gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pool import environment, launch

ROOT = Path(__file__).parents[2]
RECIPES = sorted((ROOT / "examples" / "recipes").glob("*.py"))

# One process a member for all of them: what takes the time is importing the packages.
BOTH = """
import contextlib, io, json, runpy, sys
import torch
from torch import distributed
import shoal
from accelerate.state import AcceleratorState
torch.set_num_threads(1)
on_shoal, (store, *recipes) = shoal.init_process_group, sys.argv[1:]

def on_gloo():
    distributed.init_process_group("gloo", init_method=f"file://{store}-{place}", rank=shoal.rank(), world_size=shoal.size())

said = []
for place, recipe in enumerate(recipes):
    for init in (on_shoal, on_gloo):
        shoal.init_process_group = init
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            runpy.run_path(recipe, run_name="__main__")
        backend = distributed.get_backend()
        distributed.destroy_process_group()
        AcceleratorState._reset_state(reset_partial_state=True)
        said.append((backend, [line for line in output.getvalue().splitlines() if line.startswith("rank")]))
open(f"{store}-said-{shoal.rank()}", "w").write(json.dumps(said))
"""


def variables():
    return {**environment(), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "SHOAL_TIMEOUT": "100"}


def test_the_recipes_end_as_on_gloo(tmp_path):
    process = launch(2, [sys.executable, "-c", BOTH, str(tmp_path / "store"), *map(str, RECIPES)], variables(), cwd=tmp_path,
                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    for rank in range(2):
        said = json.loads((tmp_path / f"store-said-{rank}").read_text())
        assert [backend for backend, _ in said] == ["shoal", "gloo"] * 3
        for (_, [ours]), (_, [theirs]) in zip(said[::2], said[1::2]):
            assert ours == theirs and ours.startswith(f"rank {rank} took ")


def lines(output):
    return sorted(line.split("] ")[-1] for line in output.splitlines() if " took " in line)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs_alone_and_under_both_launchers(tmp_path, recipe):
    said = {}
    for how, command in {
        "alone": [sys.executable, str(recipe)],
        "shoal": [os.path.join(os.path.dirname(sys.executable), "shoal"), "run", "-n", "2", "--", sys.executable, str(recipe)],
        "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(recipe)],
    }.items():
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=variables(), cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        said[how] = lines(ended.stdout)
    assert len(said["alone"]) == 1 and said["alone"] != said["shoal"][:1]
    assert said["shoal"] == said["torchrun"] and len({line.split(" took ")[1] for line in said["shoal"]}) == 1
