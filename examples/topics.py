"""Topics of a text file, a document a line, and of which of them each line is.

    python examples/topics.py letters.txt -k 20                       one process
    shoal run -n 4 -- python examples/topics.py letters.txt -k 20     four members, each with a quarter of the documents

docs/topics.md, Python.
"""

import argparse
import re
from pathlib import Path

import shoal


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("--sweeps", type=int, default=200)
    args = parser.parse_args()

    documents = [re.findall(r"[^\W\d_]{3,}", line.lower()) for line in args.texts.read_text(errors="replace").splitlines()]
    train, held_out = [d for i, d in enumerate(documents) if i % 10], documents[::10]
    model = shoal.topics.LDA(args.k, sweeps=args.sweeps).fit(train)
    if shoal.rank() != 0:
        return
    for topic, words in enumerate(model.top_words(8)):
        print(topic, *words)
    print(f"held-out perplexity {model.perplexity(held_out):.0f}")
    model.save(args.texts.with_suffix(".topics"))


if __name__ == "__main__":
    main()
