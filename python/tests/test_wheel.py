"""The wheel in an environment that has PyTorch and nothing else of ours."""

import importlib.util
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# PyTorch and what it imports, shown to the new environment by links: a real installation would fetch hundreds of megabytes.
PYTORCH = ["torch", "torchgen", "functorch", "numpy", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2", "markupsafe", "filelock", "fsspec"]

SMOKE = """
import torch, shoal
shoal.init()
net = torch.nn.Linear(3, 1)
net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), 0.1))
net(torch.full((4, 3), float(shoal.rank()))).sum().backward()
optimizer.step()
print(shoal.__version__, shoal.size(), float(net.weight.grad.sum()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", folder, "."],
                           cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr[-3000:]
    (made,) = folder.glob("shoal-*.whl")
    return made


def test_it_holds_the_program_the_package_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("/scripts/shoal") for name in names)
    assert any(name.startswith("shoal/_C.") for name in names)
    assert not [name for name in names if "tests" in name or name.endswith((".h", ".a"))]


def test_it_trains_in_a_clean_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True, timeout=60)
    (packages,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    for name in PYTORCH:
        found = importlib.util.find_spec(name)
        if found is None:
            continue
        source = pathlib.Path(found.origin)
        source = source.parent if source.name == "__init__.py" else source
        (packages / source.name).symlink_to(source)
        if name == "torch":  # its metadata tells dependents its version
            for about in source.parent.glob("torch-*.dist-info"):
                (packages / about.name).symlink_to(about)
    subprocess.run([sys.executable, "-m", "pip", "-q", "--python", tmp_path / "env" / "bin" / "python", "install", "--no-deps", "--no-index", wheel],
                   check=True, timeout=120)
    (tmp_path / "smoke.py").write_text(SMOKE)
    ran = subprocess.run([tmp_path / "env" / "bin" / "shoal", "run", "-n", "2", "--", tmp_path / "env" / "bin" / "python", "smoke.py"],
                         cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said = {line.split("] ")[1] for line in ran.stdout.splitlines() if line.startswith("[")}
    assert said == {"0.1.0 2 6.0"}, ran.stdout  # mean of sums over 4 rows of zeros and of ones: (0 + 12) / 2
