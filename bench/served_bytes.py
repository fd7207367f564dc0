"""A step of a served model by how rows travel: milliseconds, bytes and the loss.

    shoal lab up -n 3 --rate 100mbit --name b
    for plan in ps:bsp ps:bsp+bf16 ps:bsp+int8; do shoal run -n 3 --lab b -- .venv/bin/python bench/served_bytes.py $plan; done

Three layers, 1.3 million parameters, 64 samples a member and step, classes of a network of two; SGD with momentum. Five steps are not timed.
"""

import sys
import time

import torch

import shoal

STEPS, UNTIMED = 60, 5

shoal.init()
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
teacher = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
draw = torch.Generator().manual_seed(7 + shoal.rank())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
model, optimizer = shoal.data_parallel(model, optimizer, plan=sys.argv[1])
losses = []
for step in range(STEPS):
    if step == UNTIMED:
        begun = time.perf_counter()
    x = torch.randn(64, 256, generator=draw)
    with torch.no_grad():
        y = teacher(x).argmax(1)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
milliseconds = 1000 * (time.perf_counter() - begun) / (STEPS - UNTIMED)
model.flush()
met = [group.table.telemetry() for group in model._groups]
if shoal.rank() == 0:
    said, heard = sum(t["said"]["increments"] for t in met) / 1e6, sum(t["heard"]["rows"] for t in met) / 1e6
    print(f"{sys.argv[1]}: {milliseconds:.1f} ms a step, {said:.1f} MB of gradients, {heard:.1f} MB of rows, loss of the last ten steps {sum(losses[-10:]) / 10:.4f}")
