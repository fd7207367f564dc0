"""Adagrad that bears stale gradients, for parameters that servers step (docs/ways.md, Served)."""

import torch


class AdaptiveRevision(torch.optim.Adagrad):
    """McMahan and Streeter, "Delay-tolerant algorithms for asynchronous distributed online learning", NIPS'14. With plan "ps" under any consistency but
    bsp, servers revise the steps of gradients that came since the one at hand was computed. Where nothing is late, as alone, it is Adagrad."""

    def __init__(self, params, lr: float = 0.01, eps: float = 1e-10, weight_decay: float = 0):
        super().__init__(params, lr=lr, eps=eps, weight_decay=weight_decay)
