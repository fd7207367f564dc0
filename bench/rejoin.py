"""How long a step takes in which a member is killed and another comes in its place:

    shoal run -n 4 --on-peer-lost rejoin -- python bench/rejoin.py 512 [PAUSE]

Eight layers of 512 x 512 with momentum: a state of 64 * 512^2 bytes. All pause for PAUSE seconds (5: by then there is a spare) before step 6, in whose backward
pass rank 1 is killed. Who comes says when it had joined, had taken over the state and had taken the step; rank 0 how long it was from the kill
until it had taken the step, and its other steps. Times between processes are of one machine's clock.
"""

import time

began = time.monotonic()

import os  # noqa: E402
import pathlib  # noqa: E402
import signal  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402

import torch  # noqa: E402

import shoal  # noqa: E402

KILLED_IN, STEPS = 6, 20
width, pause = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
came, spare = "SHOAL_GENERATION" in os.environ, "shoal.spare" in sys.modules
killed = pathlib.Path(os.environ["SHOAL_RUN_DIR"]) / "killed"
imported = time.monotonic()
shoal.init()
joined = time.monotonic()
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
model, optimizer = shoal.data_parallel(model, optimizer, plan="ring")
built = time.monotonic()
state = shoal.State(model, optimizer, step=0)
taken = time.monotonic()
seconds = {}
while state.step < STEPS:
    if state.step == KILLED_IN and not came:
        time.sleep(pause)
    step_began = time.monotonic()
    optimizer.zero_grad()
    model(torch.randn(8, width)).square().mean().backward()
    if shoal.rank() == 1 and state.step == KILLED_IN and not came:
        killed.write_text(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
    seconds[state.step] = time.monotonic() - step_began
    if state.step == KILLED_IN and came:
        ended, at = time.monotonic(), float(killed.read_text())
        print(f"came ({'a spare' if spare else 'cold'}): began {began - at:.3f} s after the kill, imported in {imported - began:.3f} s, joined in {joined - imported:.3f} s, "
              f"wrapped the model in {built - joined:.3f} s, took over the state in {taken - built:.3f} s, had taken the step {ended - imported:.3f} s after the imports", flush=True)
    if state.step == KILLED_IN and shoal.rank() == 0:
        print(f"from the kill until rank 0 had taken the step: {time.monotonic() - float(killed.read_text()):.3f} s; state of {64 * width**2 / 1e6:.1f} MB", flush=True)
    state.step += 1
if shoal.rank() == 0:
    others = [took for step, took in seconds.items() if step not in (0, KILLED_IN)]
    print(f"rank 0's other steps: median {statistics.median(others):.4f} s, longest {max(others):.4f} s; that one {seconds[KILLED_IN]:.3f} s", flush=True)
