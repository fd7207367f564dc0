"""How long a step takes in which a member is killed and another comes in its place:

    shoal run -n 4 --on-peer-lost rejoin -- python bench/rejoin.py 512

Eight layers of 512 x 512 with momentum. Rank 1 is killed in the backward pass of step 6; rank 0 says how long that step and the one before took, and
who comes how long it took to join and to take over the state.
"""

import os
import signal
import sys
import time

import torch

import shoal

width = int(sys.argv[1])
came = "SHOAL_GENERATION" in os.environ
began = time.monotonic()
shoal.init()
joined = time.monotonic()
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
model, optimizer = shoal.data_parallel(model, optimizer, plan="ring")
built = time.monotonic()
state = shoal.State(model, optimizer, step=0)
if came:
    print(f"came: joined in {joined - began:.3f} s, took over the state in {time.monotonic() - built:.3f} s", flush=True)
while state.step < 10:
    step_began = time.monotonic()
    optimizer.zero_grad()
    model(torch.randn(8, width)).square().mean().backward()
    if shoal.rank() == 1 and state.step == 6 and not came:
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
    if shoal.rank() == 0 and state.step in (5, 6):
        print(f"step {state.step}: {time.monotonic() - step_began:.3f} s", flush=True)
    state.step += 1
