"""Texts for the races of topics, out of bags of words as UCI has them: "number number word word ...", a document a line, which all programs read.

    python bench/topics_texts.py docword.NAME.txt.gz vocab.NAME.txt OUT                        OUT.txt
    python bench/topics_texts.py ... OUT --every 200                                           without documents 7, 207, ...: their halves are OUT.h1.txt, OUT.h2.txt
    python bench/topics_texts.py ... OUT --every 200 --halves docword.h1.gz docword.h2.gz      the same, halved as these say
    python bench/topics_texts.py ... OUT --halves docword.h1.gz docword.h2.gz                  all documents, and other ones halved
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Iterator

FIRST = 7  # of the documents that are held out, from 1


def documents(file: str, words: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each document of a bag of words."""
    with gzip.open(file, "rt") as bag:
        for _ in range(3):  # documents, words, entries
            next(bag)
        last, text = None, []
        for line in bag:
            number, word, count = map(int, line.split())
            if number != last:
                if text:
                    yield last, text
                last, text = number, []
            text += [words[word - 1]] * count
        if text:
            yield last, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bag")
    parser.add_argument("vocabulary")
    parser.add_argument("out")
    parser.add_argument("--every", type=int, help="hold one document in so many out")
    parser.add_argument("--halves", nargs=2, help="of what is held out, as bags of words")
    args = parser.parse_args()
    with open(args.vocabulary, encoding="utf-8") as file:
        words = file.read().split("\n")
    coin = random.Random(1)
    out = {name: open(f"{args.out}{name}.txt", "w", encoding="utf-8") for name in ("", ".h1", ".h2")}

    def write(name: str, number: int, text: list[str]) -> None:
        print(number, number, *text, file=out[name])

    for number, text in documents(args.bag, words):
        if not args.every or number % args.every != FIRST % args.every:
            write("", number, text)
        elif not args.halves:
            coin.shuffle(text)
            write(".h1", number, text[::2])
            write(".h2", number, text[1::2])
    for name, bag in zip((".h1", ".h2"), args.halves or ()):
        for number, text in documents(bag, words):
            write(name, number, text)
    for file in out.values():
        file.close()


if __name__ == "__main__":
    main()
