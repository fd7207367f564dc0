"""One member of a training run that counts what packing keeps off its links; started by bench/packed.py, with SHOAL_PACKING as it wants it.

Rank 0 prints one JSON line: the median seconds of a step, the bytes that members sent in the steps that count, how many of them packing saved,
and the loss of the last step.
"""

import argparse
import functools
import json

import shoal
import torch
from shoal import session
from train_member import Load, Trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--plan", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    args = parser.parse_args()
    args.device, args.replay, args.compile, args.autocast, args.places = "cpu", False, False, False, 1000
    torch.set_num_threads(1)
    shoal.init()
    here = session.current()
    trainer = Trainer(functools.partial(shoal.data_parallel, plan=args.plan), Load(args.model, args), args)

    def counted() -> list[int]:
        everybody = here.gather(json.dumps([[link["sent"], link["saved"]] for link in here.links()]).encode(), "what each has counted")
        return [sum(link[i] for one in everybody for link in json.loads(one)) for i in range(2)]

    before = counted()
    times = sorted(trainer.turn(args.steps))
    sent, saved = (after - b for after, b in zip(counted(), before))
    if here.rank == 0:
        print(json.dumps({"seconds": times[len(times) // 2], "sent": sent, "saved": saved}), flush=True)


if __name__ == "__main__":
    main()
