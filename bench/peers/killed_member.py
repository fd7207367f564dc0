"""One member of a training run in which member --victim kills itself (kill -9) in the middle of a backward pass, or stops (--stop); started by
bench/failure.py. The victim prints when, each survivor when its training raised shoal.PeerLost, or where the others go on (SHOAL_ON_PEER_LOST=shrink)
when it had taken each step: seconds of the machine's clock.
"""

import argparse
import json
import os
import signal
import time

import torch
import torch.nn.functional as F

import models
import shoal


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--victim", type=int, required=True)
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = models.MODELS[args.model]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    shown, optimizer = shoal.data_parallel(model, optimizer)

    def die(*_: object) -> None:
        if step == 8 and shoal.rank() == args.victim:
            os.write(1, (json.dumps({"killed": time.monotonic()}) + "\n").encode())
            os.kill(os.getpid(), signal.SIGSTOP if args.stop else signal.SIGKILL)

    layers = [module for module in model.modules() if list(module.parameters(recurse=False))]
    layers[len(layers) // 2].register_full_backward_hook(die)
    images, labels = torch.randn(8, 1, 28, 28), torch.randint(0, 10, (8,))
    steps, goes_on = [], os.environ.get("SHOAL_ON_PEER_LOST") == "shrink"
    try:
        for step in range(20 if goes_on else 100_000):
            optimizer.zero_grad()
            F.cross_entropy(shown(images), labels).backward()
            optimizer.step()
            steps.append(time.monotonic())
        print(json.dumps({"rank": shoal.rank(), "steps": steps, "left": shoal.members()}), flush=True)
    except shoal.PeerLost:
        print(json.dumps({"rank": shoal.rank(), "saw": time.monotonic()}), flush=True)
        raise


if __name__ == "__main__":
    main()
