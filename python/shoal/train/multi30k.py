"""Pairs of an English and a German sentence: Multi30k's train.en, train.de, val.en and val.de, a sentence a line, plain or gzip."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from .. import models
from ..errors import mistake
from .text_file import read_text

PAD, UNKNOWN, BEGIN, END = range(4)
_SPECIAL = 4
_LONGEST = 50  # words of a sentence; what follows is cut
_HINT = "--data is Multi30k's folder with train.en, train.de, val.en and val.de, or the same with .gz"
_UNTRAINED = -100  # torch's mark of a place that has no target


@dataclass
class Pairs:
    sources: list[torch.Tensor]  # int64, each with END behind it
    targets: list[torch.Tensor]  # int64, each with BEGIN before it and END behind it

    def __len__(self) -> int:
        return len(self.sources)

    def __str__(self) -> str:
        return "pairs of sentences"

    def batch(self, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """{pairs, words}: source, target up to each word, and that word.

        The source runs backwards, its padding first, so that the encoder ends at the first word (Sutskever et al. 2014, 3.3)."""
        sources = [self.sources[i].flip(0) for i in chosen]
        targets = [self.targets[i] for i in chosen]
        return (pad_sequence(sources, batch_first=True, padding_value=PAD, padding_side="left"),
                pad_sequence([target[:-1] for target in targets], batch_first=True, padding_value=PAD),
                pad_sequence([target[1:] for target in targets], batch_first=True, padding_value=_UNTRAINED))


def read(where: str) -> tuple[Pairs, Pairs]:
    """(training, held out). Words are what is most frequent in the training part, as many as the model knows."""
    size = models.describe("seq2seq")["inputs"][0]["words"]
    training = [_sentences(Path(where), "train", language) for language in ("en", "de")]
    words = [_vocabulary(sentences, size) for sentences in training]
    held_out = [_sentences(Path(where), "val", language) for language in ("en", "de")]
    return _pairs(Path(where), "train", training, words), _pairs(Path(where), "val", held_out, words)


def _sentences(folder: Path, part: str, language: str) -> list[list[str]]:
    plain = folder / f"{part}.{language}"
    text = read_text(plain if plain.exists() else plain.with_name(plain.name + ".gz"), _HINT)
    return [re.findall(r"\w+|[^\w\s]", line.lower())[:_LONGEST] for line in text.splitlines()]


def _vocabulary(sentences: list[list[str]], size: int) -> dict[str, int]:
    counted = Counter(word for sentence in sentences for word in sentence)
    frequent = sorted(counted, key=lambda word: (-counted[word], word))[: size - _SPECIAL]
    return {word: i for i, word in enumerate(frequent, _SPECIAL)}


def _pairs(folder: Path, part: str, sentences: list, words: list) -> Pairs:
    sources, targets = sentences
    if len(sources) != len(targets):
        raise mistake(str(folder), f"{part}.en has {len(sources)} lines, {part}.de {len(targets)}", _HINT)
    if not sources:
        raise mistake(str(folder), f"{part}.en holds no sentence", _HINT)

    def tokens(sentence: list[str], known: dict[str, int]) -> list[int]:
        return [known.get(word, UNKNOWN) for word in sentence] + [END]

    return Pairs([torch.tensor(tokens(sentence, words[0])) for sentence in sources],
                 [torch.tensor([BEGIN] + tokens(sentence, words[1])) for sentence in targets])
