"""Networks as values, and what would happen on them: what `shoal topo`, `shoal plan --topology` and `shoal sim` do.

    network = shoal.Network("torus 4x4", rate="1gbit")        # or a file, or a dict as in docs/topology.md
    network.save("net.json")
    shoal.plan("lenet", network, gflops=50)["speedup"]        # what `shoal plan --json` prints
    shoal.simulate({"shoal_sim": 1, "topology": {"file": network}, "run": [{"program": "ring", "bytes": "64MB"}]})

Nothing is sent here. Wrong files and values raise shoal.Error with one line that names what is wrong.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import _C, durable
from .errors import mistake


class Network:
    """Hosts, switches and links. Host i is rank i. json: as files have it."""

    def __init__(self, source: str | os.PathLike | Mapping, *, rate: str = "", latency: str = "", rates: Sequence[str] = (), uplink: str = "",
                 uplink_latency: str = "", wrap: Sequence[int] = (), dead: Sequence[str] = ()):
        """source: a file (Shoal's JSON, NCCL's XML, GML); the contents of such JSON; or a form and its size, "star 8", "fattree 4x8", "sites 2x4",
        "torus 32x32", "mesh 8x8", to which the rest belongs: words as of `shoal topo generate`, "1gbit" and "50us"."""
        said = {"rate": rate, "latency": latency, "rates": ",".join(rates), "uplink": uplink, "uplink_latency": uplink_latency,
                "wrap": ",".join(str(dimension) for dimension in wrap)}
        form, _, size = source.partition(" ") if isinstance(source, str) else ("", "", "")
        if form in ("star", "fattree", "sites", "torus", "mesh") and not os.path.exists(source):
            self.json = _C.network_generate(form, size.strip(), said, list(dead))
            return
        for word, value in (said | {"dead": dead}).items():
            if value:
                raise mistake(word, "belongs to a form, not to a file or a dict", 'Network("torus 4x4", rate="1gbit")')
        self.json = _C.network_checked(_text(source)) if isinstance(source, Mapping) else _C.network_read(os.fspath(source))

    @classmethod
    def infer(cls, hosts: Sequence[str], rate: Sequence[Sequence[float]], latency: Sequence[Sequence[float]],
              together: Callable[[list[tuple[int, int]]], list[float]]) -> Network:
        """The tree of switches that explains what was measured: rate[i][j] bytes/s and latency[i][j] seconds from host i to j, of each pair alone, and
        together(flows), the rates of pairs (i, j) that send at the same time (`shoal topo probe` does so between live members)."""
        flat = [[float(value) for row in matrix for value in row] for matrix in (rate, latency)]
        return cls(json.loads(_C.network_infer(list(hosts), flat[0], flat[1], together)))

    @property
    def hosts(self) -> list[str]:
        return json.loads(self.json)["compute"]

    def svg(self) -> str:
        """Drawn, as `shoal topo show --svg` does."""
        return _C.network_draw(self.json)

    def save(self, file: str | os.PathLike) -> None:
        durable.write(os.fspath(file), [(self.json + "\n").encode()])

    def __eq__(self, other) -> bool:
        return isinstance(other, Network) and self.json == other.json

    def __hash__(self) -> int:
        return hash(self.json)


def plan(model, network: Network, choice: str = "auto", *, gflops: float | None = None, batch: float = 32, whole_batch: bool = False, sample=None,
         alpha: str = "100us", add_rate: str = "8GB/s", overlap: float = 1) -> dict:
    """An iteration by each way with the hosts of the network as members: what `shoal plan MODEL --topology FILE --json` prints.

    model: a name that `shoal train` knows; a file or dict of a model (docs/plans.md); or a module, with `sample`, the arguments of its forward for a batch of
    one, both on the meta device. gflops: how fast a member computes; measured here if it is not said."""
    if gflops is None:
        from .gemm_rate import measure

        gflops = measure() / 1e9
    where = json.loads(network.json).get("name") or "the network"
    return json.loads(_C.foresee(_described(model, sample), network.json, where, choice, batch, whole_batch, 1e9 * gflops, alpha, add_rate, overlap))


def _described(model, sample) -> str:
    if isinstance(model, Mapping):
        return _text(model)
    if isinstance(model, (str, os.PathLike)):
        return _read(Path(model)) if os.fspath(model).endswith(".json") else _C.known_model(os.fspath(model))
    from .describe import describe

    if sample is None:
        raise mistake("sample", "a module is described by a forward pass of one", "sample=(torch.empty(1, 784, device=\"meta\"),)")
    return json.dumps(describe(type(model).__name__, model, tuple(sample)))


def simulate(scenario: str | os.PathLike | Mapping) -> dict:
    """What `shoal sim SCENARIO --json` prints (docs/simulation.md). scenario: a file; its text; or the same as a dict, in which a Network, a Program or a
    saved plan's contents may stand where a file's name does."""
    files: dict[str, str] = {}
    if isinstance(scenario, Mapping):
        text, where, folder = _toml(scenario, files), "scenario", "."
    elif isinstance(scenario, str) and "\n" in scenario:
        text, where, folder = scenario, "scenario", "."
    else:
        file = Path(scenario)
        text, where, folder = _read(file), str(file), str(file.parent)
    return json.loads(_C.simulate(text, where, folder, files))


def _read(file: Path) -> str:
    """Bytes that are no text are left to the reader of the format, who names the place."""
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise mistake(str(file), f"cannot be read: {error.strerror}", "") from None


def _text(contents) -> str:
    try:
        return json.dumps(contents, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise mistake("contents", f"are no JSON: {error}", "") from None


def _toml(tables: Mapping, files: dict[str, str]) -> str:
    """Keys first, then [tables] and [[tables]]: all that scenarios have. What stands for a file goes into `files`, under a name of its own."""

    def value(key: str, given) -> str:
        if hasattr(given, "json") or (key == "file" and isinstance(given, Mapping)):
            name = f"given-{len(files)}.json"
            files[name] = given.json if hasattr(given, "json") else _text(given)
            return json.dumps(name)
        if isinstance(given, os.PathLike):
            given = os.fspath(given)
        if isinstance(given, (list, tuple)):
            return "[" + ", ".join(value("", one) for one in given) + "]"
        if isinstance(given, (bool, int, float, str)):
            return json.dumps(given)  # NaN is neither TOML nor a figure, and is refused with its line
        raise mistake(key, f"a {type(given).__name__} is nothing that a scenario has", "")

    def lines(table: Mapping) -> str:
        return "".join(f"{key} = {value(key, given)}\n" for key, given in table.items())

    top, behind = {}, ""
    for key, given in tables.items():
        if isinstance(given, Mapping):
            behind += f"[{key}]\n" + lines(given)
        elif isinstance(given, (list, tuple)) and given and all(isinstance(one, Mapping) for one in given):
            behind += "".join(f"[[{key}]]\n" + lines(one) for one in given)
        else:
            top[key] = given
    return lines(top) + behind
