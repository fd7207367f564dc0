"""Topics of documents that a model has not seen: processor time a document, beside tomotopy.

    python bench/topics_infer.py TRAIN NEW -k 1000 --tomotopy PYTHON      texts "id id word word ...", a document a line; PYTHON has tomotopy
    python bench/topics_infer.py TRAIN NEW --quick                       a smoke test, without peer

`shoal topics infer` is timed whole, with reading and writing, on the new documents 20 times over, less what it takes for one of them: that is the model's. tomotopy is
timed in its infer() alone, on few documents, for it takes long. One thread each. Both models are of a few sweeps: what inference costs does not depend on what topics mean.
"""

from __future__ import annotations

import json
import pathlib
import resource
import subprocess
import sys
import tempfile

import side_by_side as sbs

PEER = """
import json, sys, time, tomotopy
train, new, topics, documents = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
read = lambda file: [line.split()[2:] for line in open(file)]
model = tomotopy.LDAModel(k=topics, alpha=50 / topics, eta=0.01, seed=1)
for words in read(train)[:20000]:
    model.add_doc(words)
model.train(5, workers=1)
docs = [model.make_doc(words) for words in read(new)[:documents]]
begin = time.process_time()
model.infer(docs, workers=1)
print(json.dumps({"us a document": (time.process_time() - begin) / len(docs) * 1e6}))
"""


def children_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = sbs.options(__doc__)
    parser.add_argument("train")
    parser.add_argument("new")
    parser.add_argument("-k", "--topics", type=int, default=1000)
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tomotopy", help="a Python that has it")
    parser.add_argument("--documents", type=int, default=20, help="that tomotopy infers (default: 20)")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.topics, args.sweeps = 1, 10, 5
    with tempfile.TemporaryDirectory() as folder:
        texts = [line for line in pathlib.Path(args.new).read_text().splitlines() if line.split()[2:]]
        one, many, model = (f"{folder}/{name}" for name in ("one.txt", "many.txt", "model"))
        pathlib.Path(one).write_text(texts[0] + "\n")
        pathlib.Path(many).write_text("\n".join(texts * 20) + "\n")
        subprocess.run([sbs.shoal(), "topics", "train", args.train, "--format", "yahoo", "-k", str(args.topics), "--sweeps", str(args.sweeps), "--alpha-sum", "50",
                        "--fixed-prior", "--test-share", "0", "--look-every", "0", "--output", model], check=True, capture_output=True)

        def infer(file: str) -> float:
            return children_seconds([sbs.shoal(), "topics", "infer", model, file, "--format", "yahoo", "--threads", "1", "--output", f"{folder}/topics.tsv"])

        variants = {"shoal": lambda: {"us a document": (infer(many) - infer(one)) / (20 * len(texts)) * 1e6}}
        if args.tomotopy:
            command = [args.tomotopy, "-c", PEER, args.train, args.new, str(args.topics), str(args.documents)]
            variants["tomotopy"] = lambda: json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        results = sbs.interleave(variants, args.rounds)
    sbs.print_header(f"topics of new documents, {args.topics} topics, one thread")
    for name, figures in results.items():
        taken = figures["us a document"]
        print(f"{name:<10} {sbs.median(taken):10.1f} us a document ({sbs.spread(taken)}), {1e6 / sbs.median(taken):,.0f} documents/s")
    if args.tomotopy:
        print(f"tomotopy takes {sbs.paired_ratio(results['tomotopy']['us a document'], results['shoal']['us a document']):.0f} times as long")


if __name__ == "__main__":
    sys.exit(main())
