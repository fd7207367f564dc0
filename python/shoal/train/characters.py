"""A text as windows of characters, each predicted from those before it: tiny Shakespeare (input.txt), plain or gzip."""

from dataclasses import dataclass
from pathlib import Path

import torch

from .. import models
from ..errors import mistake
from .text_file import read_text

_TRAINED = 0.9  # of the text; the rest is held out


@dataclass
class Windows:
    tokens: torch.Tensor  # int64, the text
    places: int           # of a window

    def __len__(self) -> int:
        return (len(self.tokens) - 1) // self.places

    def __str__(self) -> str:
        return f"windows of {self.places} characters"

    def batch(self, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """{windows, places}: the characters, and of each the one that follows."""
        at = chosen.unsqueeze(1) * self.places + torch.arange(self.places)
        return self.tokens[at], self.tokens[at + 1]


def read(where: str) -> tuple[Windows, Windows]:
    """(training, held out): the beginning and the end of the text."""
    given, = models.describe("char-transformer")["inputs"]
    places, = given["shape"]
    text = read_text(Path(where), "--data is a text, for instance tiny Shakespeare's input.txt")
    known = {character: i for i, character in enumerate(sorted(set(text)))}
    if len(known) > given["words"]:
        raise mistake(where, f"{len(known)} different characters, the model knows {given['words']}")
    end = int(len(text) * _TRAINED)
    if len(text) - end <= places:
        raise mistake(where, f"{len(text)} characters: a tenth of them, which is held out, must hold a window of {places + 1}")
    tokens = torch.tensor([known[character] for character in text])
    return Windows(tokens[:end], places), Windows(tokens[end:], places)
