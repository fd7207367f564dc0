"""A model is described as it is: parameters, operations and rows of each layer, without computing anything."""

import json
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn

from pool import program
from shoal.describe import describe

FACTORIES = """
    import torch
    from torch import nn

    def net():
        print("this is not the answer")
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 30 * 30, 10))

    def text():
        return nn.Sequential(nn.Embedding(50, 12), nn.Linear(12, 50)), (torch.zeros(1, 7, dtype=torch.long),)

    def number():
        return 5

    def broken():
        raise RuntimeError("no such weights")
"""


def meta(make, *shape, **kind):
    with torch.device("meta"):
        return describe("net", make(), (torch.empty(1, *shape, **kind),))


def layer(described, name):
    return next(found for found in described["layers"] if found["name"] == name)


def test_operations_are_two_for_each_multiplication_and_rows_are_those_of_the_product():
    described = meta(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(2), nn.Linear(900, 5)), 3, 32, 32)
    conv, linear = layer(described, "0"), layer(described, "3")
    assert conv["kind"] == "conv" and conv["forward_flops"] == 2 * 3 * 8 * 9 * 30 * 30
    assert (conv["inputs"], conv["outputs"]) == (3 * 32 * 32, 8 * 30 * 30)
    assert linear["kind"] == "fc" and linear["rows"] == 8 and linear["forward_flops"] == 2 * 8 * 900 * 5
    assert linear["parameters"] == [{"name": "3.weight", "count": 4500, "type": "f32"}, {"name": "3.bias", "count": 5, "type": "f32"}]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.embed, self.middle, self.head = nn.Embedding(20, 4), nn.Linear(4, 4), nn.Linear(4, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.middle(self.middle(self.embed(x) * self.scale)))


def test_every_trained_parameter_is_in_one_layer_where_it_is_used_first():
    described = meta(Tied, 6, dtype=torch.long)
    owners = [(found["name"], p["name"]) for found in described["layers"] for p in found["parameters"]]
    assert sorted(owners) == [("Tied", "scale"), ("embed", "embed.weight"), ("middle", "middle.bias"), ("middle", "middle.weight")]
    middle = layer(described, "middle")
    assert middle["rows"] == 12 and middle["forward_flops"] == 2 * 12 * 4 * 4  # it is called twice
    assert layer(described, "head")["forward_flops"] == 2 * 6 * 4 * 20
    assert layer(described, "Tied")["forward_flops"] == 0  # all of it is its layers'


def test_nothing_is_lost_of_a_transformer():
    with torch.device("meta"):
        net = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, batch_first=True), 2)
        described = describe("net", net, (torch.empty(1, 10, 32),))
    assert sum(p["count"] for found in described["layers"] for p in found["parameters"]) == sum(p.numel() for p in net.parameters())
    # Of each layer: queries, keys, values and what they come to, twice the attention itself, and two wide products.
    products = 4 * 10 * 32 * 32 + 2 * 10 * 10 * 32 + 2 * 10 * 32 * 2048
    assert sum(found["forward_flops"] for found in described["layers"]) == 2 * 2 * products


MODULES = {"crooked": "def net(:", "unnamed": "nn.Linear(2, 2)", "ending": "raise SystemExit(0)"}  # that cannot be imported


def run(tmp_path, *words):
    (tmp_path / "factories.py").write_text(textwrap.dedent(FACTORIES))
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text + "\n")
    return subprocess.run([sys.executable, "-m", "shoal.describe", *words], capture_output=True, text=True, cwd=tmp_path)


def test_a_factory_of_the_user_is_described_on_stdout_alone(tmp_path):
    ended = run(tmp_path, "factories:net", "--sample", "3,32,32")
    assert ended.returncode == 0, ended.stderr
    assert [found["name"] for found in json.loads(ended.stdout)["layers"]] == ["0", "2"]
    assert [found["rows"] for found in json.loads(run(tmp_path, "factories:text").stdout)["layers"]] == [7, 7]


def plan(tmp_path, *words):
    (tmp_path / "factories.py").write_text(textwrap.dedent(FACTORIES))
    return subprocess.run([program(), "plan", *words, "-n", "2", "--rate", "1gbit", "--gflops", "40", "--json"], capture_output=True, text=True, cwd=tmp_path)


def test_shoal_plan_foresees_a_factory_of_the_user_and_passes_its_mistakes_on(tmp_path):
    ended = plan(tmp_path, "factories:net", "--sample", "3,32,32")
    assert ended.returncode == 0, ended.stderr
    foreseen = json.loads(ended.stdout)
    assert foreseen["model"] == "factories:net" and [layer["layer"] for layer in foreseen["balance"]] == ["0", "2"]
    ended = plan(tmp_path, "factories:broken")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "shoal plan: factories:broken: raises RuntimeError: no such weights\n")


@pytest.mark.parametrize("words, line", [
    (["factories:net"], "factories:net: what is one sample? ("),
    (["factories:net", "--sample", "3,32"], "factories:net: its forward pass on one sample fails with "),
    (["factories:net", "--sample", "3x32"], "--sample: '3x32' is no shape ("),
    (["factories:nothing"], "factories:nothing: factories has no function nothing ("),
    (["factories:number"], "factories:number: returns a int, not a torch.nn.Module"),
    (["factories:broken"], "factories:broken: raises RuntimeError: no such weights"),
    (["no_such_module:net"], "no_such_module:net: cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    (["crooked:net"], "crooked:net: cannot be imported: SyntaxError: "),
    (["unnamed:net"], "unnamed:net: cannot be imported: NameError: name 'nn' is not defined"),
    (["ending:net"], "ending:net: cannot be imported: SystemExit: 0"),
    ([], "python -m shoal.describe: the following arguments are required: model (python -m shoal.describe --help lists the flags)"),
])
def test_a_mistake_is_one_line(tmp_path, words, line):
    ended = run(tmp_path, *words)
    assert ended.returncode == 2 and ended.stderr.splitlines()[-1].startswith("shoal: " + line), ended.stderr
    assert "Traceback" not in ended.stderr and ended.stdout == ""
