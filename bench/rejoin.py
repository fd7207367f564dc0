"""How long steps take when a member is killed and another comes in its place:

    shoal run -n 4 --on-peer-lost rejoin -- python bench/rejoin.py 512 [PAUSE]
    shoal run -n 4 --on-peer-lost regrow -- python bench/rejoin.py 512 [PAUSE]

Eight layers of 512 x 512 with momentum: a state of 64 * 512^2 bytes. All pause for PAUSE seconds (5) before step 6, in whose backward
pass rank 1 is killed. Who comes says when it had joined, had taken over the state and had taken its first step; rank 0 how long it was from the kill
until it had taken the step, and its steps before, from the kill until all were there, and after: each from the end of the one before. Training ends
13 steps after that. Times between processes are of one machine's clock.
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

KILLED_IN, AFTER = 6, 13
width, pause = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
came, forked = "SHOAL_GENERATION" in os.environ, "shoal.fork_server" in sys.modules
comes = os.environ["SHOAL_ON_PEER_LOST"] in ("rejoin", "regrow")
killed = pathlib.Path(os.environ["SHOAL_RUN_DIR"]) / "killed"
imported = time.monotonic()
shoal.init()
joined = time.monotonic()
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(8)])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
model, optimizer = shoal.data_parallel(model, optimizer, plan="ring")
built = time.monotonic()
state = shoal.State(model, optimizer, step=0, whole=0, complete=None)  # steps with all since the kill; the first of these
taken, first = time.monotonic(), state.step
seconds, ended = {}, taken
while state.whole <= AFTER:
    if state.step == KILLED_IN and not came:
        time.sleep(pause)
        ended = time.monotonic()
    optimizer.zero_grad()
    model(torch.randn(8, width)).square().mean().backward()
    if shoal.rank() == 1 and state.step == KILLED_IN and not came:
        killed.write_text(str(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
    seconds[state.step], ended = time.monotonic() - ended, time.monotonic()
    if came and state.step == first:
        at = float(killed.read_text())
        print(f"came ({'forked' if forked else 'cold'}): began {began - at:.3f} s after the kill, imported in {imported - began:.3f} s, joined in {joined - imported:.3f} s, "
              f"wrapped the model in {built - joined:.3f} s, took over the state in {taken - built:.3f} s, had taken step {first} {ended - imported:.3f} s after the imports", flush=True)
    if state.step == KILLED_IN and shoal.rank() == 0:
        print(f"from the kill until rank 0 had taken the step: {time.monotonic() - float(killed.read_text()):.3f} s; state of {64 * width**2 / 1e6:.1f} MB", flush=True)
    if state.step >= KILLED_IN and (len(shoal.members()) == shoal.size() or not comes):
        state.whole += 1
        state.complete = state.complete or state.step
    state.step += 1
if shoal.rank() == 0:
    for name, steps in {"before": range(1, KILLED_IN), "from the kill until all were there": range(KILLED_IN, state.complete + 2), "after": range(state.complete + 2, state.step)}.items():
        took = [seconds[step] for step in steps]
        print(f"rank 0's steps {name}: {len(took)}, median {statistics.median(took):.4f} s, longest {max(took):.4f} s: {' '.join(f'{each:.3f}' for each in took)}", flush=True)
