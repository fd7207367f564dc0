"""Members are killed in the middle of training: what the others see, when, and how the run ends."""

import subprocess
import sys
import time

import pytest

from pool import launch

# Trains until the member that was chosen kills itself; says when, and when the others learn it (the machine's clock).
DYING = """
import os, signal, sys, time
import torch, shoal, tiny
torch.set_num_threads(1)
victim, moment = int(sys.argv[1]), sys.argv[2]
net, optimizer = tiny.wrap(tiny.model())

def die(*_):
    if step == 6 and shoal.rank() == victim:
        os.write(1, f"KILLED {time.monotonic()}\\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)

if moment == "backward":
    net.module[2].register_full_backward_hook(die)  # some gradients have left, others have not
else:
    tiny.behind_ours(optimizer, die)  # with all means, before the step is taken
try:
    for step in range(10_000):
        optimizer.zero_grad()
        tiny.loss(net, step, shoal.rank()).backward()
        optimizer.step()
except shoal.PeerLost as error:
    print("SAW", shoal.rank(), error.code, time.monotonic(), flush=True)
    raise
"""

# The program's exit status says how the run ended; a shell around each member says how that one did.
WATCHED = ["sh", "-c", '"$@"; code=$?; echo "EXIT $SHOAL_RANK $code"; [ $code -lt 128 ] || kill -9 $$; exit $code', "sh"]


def after(word: str, out: str) -> list[list[str]]:
    return [line.split(word)[1].split() for line in out.splitlines() if word in line]


def last_line_of(rank: int, err: str) -> str:
    return [line for line in err.splitlines() if line.startswith(f"[{rank}]")][-1]


@pytest.mark.parametrize("victim, moment", [(0, "backward"), (1, "step"), *(pytest.param(*each, marks=pytest.mark.slow) for each in [(2, "backward"), (0, "step")])])
def test_a_killed_member_ends_the_others_at_once_with_one_line_and_exit_code_3(victim, moment):
    process = launch(3, [*WATCHED, sys.executable, "-c", DYING, str(victim), moment], stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    ended = time.monotonic()
    killed = float(after("KILLED", out)[0][0])
    survivors = [rank for rank in range(3) if rank != victim]
    saw = {int(rank): (code, float(when) - killed) for rank, code, when in after("SAW", out)}
    assert {rank: code for rank, (code, _) in saw.items()} == dict.fromkeys(survivors, "peer_lost"), err
    # Deadlines of a failure on a loaded machine: silence alone would be noticed after 5 s, and the launcher ends members that
    # do not end by themselves 5 s later. bench/failure.py prints how long it takes on an idle one.
    assert max(seconds for _, seconds in saw.values()) < 2
    assert ended - killed < 4
    assert dict(after("EXIT", out)) == {**dict.fromkeys(map(str, survivors), "3"), str(victim): "137"}
    for rank in survivors:
        assert last_line_of(rank, err).startswith(f"[{rank}] shoal: rank {victim} (") and "was lost: " in last_line_of(rank, err)
    assert "Traceback" not in err
    assert process.returncode == 3
    assert err.splitlines()[-1].startswith(f"shoal: rank {victim} failed first: killed by signal 9 (KILL)")
