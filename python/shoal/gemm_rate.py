"""python -m shoal.gemm_rate: one line of JSON, the rate of the matrix product that fcnet spends most of its time in.

`shoal doctor` starts it on every member at once, so that members which share cores see what they will get."""

import json
import statistics
import time

import torch

_BATCH, _WIDTH = 128, 2048
_SECONDS = 1.0  # of measuring, after one product to warm up


def measure() -> float:
    """Floating-point operations a second: the median product."""
    a, b = torch.ones(_BATCH, _WIDTH, device="cpu"), torch.ones(_WIDTH, _WIDTH, device="cpu")
    product = a @ b
    if product[0, 0].item() != _WIDTH:
        raise SystemExit("the product is wrong")
    seconds = []
    end = time.perf_counter() + _SECONDS
    while (begin := time.perf_counter()) < end:
        torch.mm(a, b, out=product)
        seconds.append(time.perf_counter() - begin)
    return 2 * _BATCH * _WIDTH * _WIDTH / statistics.median(seconds)


if __name__ == "__main__":
    print(json.dumps({"flops": measure(), "threads": torch.get_num_threads()}))
