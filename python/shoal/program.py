"""Collectives as programs, made for a network: what `shoal program build | verify | price | show` does, as values.

    network = shoal.Network("net.json")                      # or "torus 4x4", or a dict (networks.py)
    program = shoal.program.build(network, "all_reduce")     # the quickest of all that fit
    print(program.price(network, bytes=64e6))                # {"seconds": ..., "bound_seconds": ..., "efficiency": ..., "bottleneck": ...}
    program.save("net.program.json")

Nothing is sent here. Wrong files and values raise shoal.Error with one line that names what is wrong.
"""

from __future__ import annotations

import os

from . import _C, durable
from .networks import Network


class Program:
    """A collective as data. name, collective, ranks, chunks, shares (of the chunks; empty where they are equal)."""

    def __init__(self, json: str):
        described = _C.program_describe(json)
        self.json = json
        self.name, self.collective = described["name"], described["collective"]
        self.ranks, self.chunks, self.shares = described["ranks"], described["chunks"], described["shares"]

    def verify(self, network: Network | None = None) -> dict:
        """Proves that every contribution is added once, with no wait cycle and no hazard; with a network its certificate, too, and then the
        dict has rate and bound (bytes/s, or link units) and efficiency. in_place: input and output may be one memory."""
        return _C.program_verify(self.json, network.json if network else None)

    def price(self, network: Network, bytes: float) -> dict:
        """Seconds on that network, simulated, beside the bound (None where none is known: of gather, scatter, all_to_all), once it is proved; bytes are
        of the whole vector."""
        return _C.program_price(self.json, network.json, bytes)

    def svg(self, network: Network | None = None) -> str:
        """Drawn, as `shoal program show --svg` does: who sends what to whom, a panel for each chunk; with a network, its names and rates."""
        return _C.program_draw(self.json, network.json if network else None)

    def save(self, file: str | os.PathLike) -> None:
        durable.write(os.fspath(file), [(self.json + "\n").encode()])

    def __str__(self) -> str:
        return _C.program_show(self.json)


def build(network: Network, collective: str = "all_reduce", mode: str = "auto", root: int = 0, bytes: float = 64e6) -> Program:
    """mode: auto (the quickest of all that fit with so many bytes, simulated), trees (at most 16), exact, blink; torus, mesh-ring, row-pair, multi-ring,
    hierarchical or ring where the network has that form; or a builder's name: direct, ..."""
    return Program(_C.program_build(network.json, collective, mode, root, bytes))


def load(file: str | os.PathLike) -> Program:
    return Program(_C.read_program(os.fspath(file)))
