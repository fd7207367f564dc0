"""Members that only serve (shoal run --servers, SHOAL_ROLE=server): training is that of the workers alone, and servers end when they do."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import torch

import test_factors
import tiny
from pool import launch

PATIENCE = 100.0
WORKERS = 2

# What a script says that knows nothing of servers.
TRAIN = """
import json, sys, torch, shoal, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(tiny.model())
for step in range(int(sys.argv[1])):
    tiny.step(net, optimizer, step, shoal.rank())
ways = sorted({unit["way"] for unit in json.loads(net.plan)["units"]})
torch.save([tiny.values(net.module), shoal.rank(), shoal.size(), ways], f"end-{shoal.rank()}.pt")
"""


def run(folder, script, *arguments, workers=WORKERS, servers=1, flags=(), **variables):
    process = launch(workers, [sys.executable, "-c", script, *map(str, arguments)], variables, [*(["--servers", str(servers)] if servers else []), *flags],
                     cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def alone(steps, workers=WORKERS, model=tiny.model):
    net = model()
    optimizer = tiny.sgd(net)
    for step in range(steps):
        tiny.oracle_step(net, optimizer, [lambda one, rank=rank: tiny.loss(one, step, rank).backward() for rank in range(workers)])
    return tiny.values(net)


@pytest.mark.parametrize("plan, ways", [("servers:1", ["servers:1"]), pytest.param("ring", ["ring"], marks=pytest.mark.slow), pytest.param("auto", None, marks=pytest.mark.slow)])
def test_training_ends_like_that_of_the_workers_alone(tmp_path, plan, ways):
    status, _, err = run(tmp_path, TRAIN, 6, SHOAL_PLAN=plan)
    assert status == 0, err
    assert sorted(path.name for path in tmp_path.glob("end-*")) == ["end-0.pt", "end-1.pt"]  # a server's call of data_parallel() does not return
    for rank in range(WORKERS):
        values, own, size, taken = torch.load(tmp_path / f"end-{rank}.pt")
        assert (own, size) == (rank, WORKERS) and taken == (ways or taken)
        assert tiny.equal(values, alone(6))


@pytest.mark.parametrize("plan", ["factors", pytest.param("bf16", marks=pytest.mark.slow)])
def test_to_what_all_members_gather_servers_bring_nothing(tmp_path, plan):
    script = TRAIN.replace("tiny.model()", "test_factors.Net()").replace("import json", "import test_factors, json")
    status, _, err = run(tmp_path, script, 6, SHOAL_PLAN=plan)
    assert status == 0, err
    ends = [torch.load(tmp_path / f"end-{rank}.pt") for rank in range(WORKERS)]
    assert plan in ends[0][3] and tiny.equal(ends[0][0], ends[1][0])
    tolerance = {"factors": 1e-6, "bf16": 1e-2}[plan]
    for mine, theirs in zip(ends[0][0], alone(6, model=test_factors.Net)):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=tolerance)


@pytest.mark.slow
def test_one_worker_may_have_more_servers_than_itself(tmp_path):
    status, _, err = run(tmp_path, TRAIN, 5, workers=1, servers=2)
    assert status == 0, err
    assert tiny.equal(torch.load(tmp_path / "end-0.pt")[0], alone(5, 1))


def test_one_worker_has_tables_of_its_own(tmp_path):
    more = "table = shoal.Table('t', 2); table.add([1], [[1, 2]]); table.tick(); table.barrier(); print(table.read([1]).tolist())"
    status, out, err = run(tmp_path, AFTER_INIT.format(more=more), workers=1)
    assert status == 0 and "[[1.0, 2.0]]" in out, out + err


# Two steps: no plan is chosen, and no link is measured. The model is gone when the process ends.
COUNT = """
import torch, shoal
from shoal import session
def main():
    net = torch.nn.Linear(256, 256, bias=False)
    net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1))
    before = session.everybody().links()[2]
    for step in range(2):
        net(torch.ones(4, 256)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    after = session.everybody().links()[2]
    print(*(after[way] - before[way] for way in ("sent", "received")), flush=True)
torch.set_num_threads(1)
main()
"""


@pytest.mark.parametrize("plan, part", [("servers:1", 0.5), pytest.param("ring", 0.0, marks=pytest.mark.slow)])
def test_a_server_takes_the_part_of_the_bytes_that_its_way_gives_it(tmp_path, plan, part):
    """BytePS's shares: of two workers and a server each worker owns a quarter, the server half. By an all-reduce of the workers it idles."""
    status, out, err = run(tmp_path, COUNT, SHOAL_PLAN=plan)
    assert status == 0, err
    expected, beside = part * 2 * 256 * 256 * 4, 4096
    counts = [int(word) for line in out.splitlines() for word in line.split()[1:]]
    assert len(counts) == 2 * WORKERS and all(expected <= count < expected + beside for count in counts), (counts, expected)


UNEVEN = """
import torch, shoal, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(tiny.model())
for _ in range(2):
    with net.join():
        for step in range([3, 5][shoal.rank()]):
            optimizer.zero_grad()
            tiny.loss(net, step, shoal.rank()).backward()
            optimizer.step()
shoal.save("state", net, optimizer, epochs=2)
table = shoal.Table("counts", 4)
table.add([1], torch.ones(1, 4).numpy())
table.barrier()
torch.save([tiny.values(net.module), int(table.read([1]).sum())], f"end-{shoal.rank()}.pt")
"""


def test_workers_do_all_else_among_themselves(tmp_path):
    status, _, err = run(tmp_path, UNEVEN)
    assert status == 0, err
    net = tiny.model()
    optimizer = tiny.sgd(net)
    for step in [*range(5), *range(5)]:
        tiny.oracle_step(net, optimizer, [lambda one, rank=rank: tiny.loss(one, step, rank).backward() for rank in range(2) if step < [3, 5][rank]])
    for rank in range(WORKERS):
        values, counted = torch.load(tmp_path / f"end-{rank}.pt")
        assert tiny.equal(values, tiny.values(net)) and counted == 4 * WORKERS
    assert (tmp_path / "state" / "index.json").exists()


SERVED = """
import torch, shoal, test_factors, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(test_factors.Net())
for step in range(5):
    tiny.step(net, optimizer, step, shoal.rank())
net.flush()
state = [value["momentum_buffer"] for value in optimizer.state_dict()["state"].values()]
torch.save([tiny.values(net.module), state, net._groups[0].table.holders()], f"end-{shoal.rank()}.pt")
"""


# Goal: servers hold rows, step them and have the optimizer's state of them, and nothing else changes. Relation: the bits of a run without servers.
@pytest.mark.parametrize("workers, servers, held", [(2, 1, [[0], [1], [2]]), pytest.param(1, 2, [[1], [2]], marks=pytest.mark.slow),
                                                    pytest.param(2, 3, [[2], [3], [4]], marks=pytest.mark.slow)])
def test_where_servers_step_those_that_only_serve_have_rows_too(tmp_path, workers, servers, held):
    ends = {}
    for count in (servers, 0):
        folder = tmp_path / str(count)
        folder.mkdir()
        status, _, err = run(folder, SERVED, workers=workers, servers=count, SHOAL_PLAN="ps")
        if workers == 1 and count == 0:  # one member alone has no servers at all
            continue
        assert status == 0, err
        ends[count] = [torch.load(folder / f"end-{rank}.pt") for rank in range(workers)]
        assert len(list(folder.glob("end-*"))) == workers
    for rank, (values, state, holders) in enumerate(ends[servers]):
        assert holders == held
        assert tiny.equal(values, ends[servers][0][0])
        if 0 in ends:
            assert tiny.equal(values, ends[0][rank][0]) and tiny.equal(state, ends[0][rank][1])


ROLE = "import os; os.environ['SHOAL_ROLE'] = {roles}[int(os.environ['SHOAL_RANK'])]; import shoal; shoal.init()"


@pytest.mark.parametrize("roles, line", [
    (["server", "server"], "SHOAL_ROLE: all 2 members are servers, and nobody trains (set it for the last ones alone)"),
    (["server", "worker"], "SHOAL_ROLE: rank 0 is a server, and rank 1 behind it a worker (servers are the last ranks)"),
    (["nonsense", "nonsense"], 'SHOAL_ROLE: "nonsense" is neither worker nor server'),
])
def test_wrong_roles_are_refused_in_one_line(tmp_path, roles, line):
    status, _, err = run(tmp_path, ROLE.format(roles=roles), servers=0)
    assert status == 2 and line in err and "Traceback" not in err, err


AFTER_INIT = "import shoal, tiny; shoal.init(); net, optimizer = tiny.wrap(tiny.model()); {more}"


@pytest.mark.parametrize("script, plan, line", [
    ("import shoal; shoal.Checkpoints('kept')", "auto", "has a part in shoal.data_parallel() and shoal.Table alone"),
    (AFTER_INIT.format(more="tiny.wrap(tiny.model())"), "auto", "another model is trained already, and servers are there for one"),
    ("import shoal, tiny; table = shoal.Table('counts'); net, optimizer = tiny.wrap(tiny.model())", "auto",
     "data_parallel(): members that only serve hold rows of tables by now, and do nothing else (start without --servers, or wrap the model before the first table)"),
    ("import shoal; shoal.Table('counts').define('clip', lambda keys, rows, argument: None)", "auto",
     "define: members that only serve never come to it (start without --servers)"),
    (AFTER_INIT.format(more=""), "local:8", "by local:8 members that only serve have nothing to do"),
    pytest.param(AFTER_INIT.format(more=""), "servers:2", "servers:2 in a run with 1 that only serve", marks=pytest.mark.slow),
    pytest.param(AFTER_INIT.format(more=""), "hybrid:1", "hybrid:1 in a run with 1 that only serve", marks=pytest.mark.slow),
])
def test_what_servers_have_no_part_in_is_refused_in_one_line(tmp_path, script, plan, line):
    status, _, err = run(tmp_path, script, SHOAL_PLAN=plan)
    assert status == 2 and line in err and "Traceback" not in err, err


TABLE = """
import os, sys
import numpy as np, shoal
table = shoal.Table("counts", 2, dtype="int64", consistency="essp:1")
print("goes on", flush=True)
for clock in range(5):
    if clock == 3 and shoal.rank() == 0 and sys.argv[-1] == "kill":
        os.kill(int(open("pid").read()), 9)
    table.add(np.arange(100), np.ones((100, 2), np.int64))
    table.tick()
table.barrier()
sums = table.read(np.arange(100))
print(sorted({rank for part in table.holders() for rank in part}), set(sums.ravel().tolist()), shoal.size(), flush=True)
"""


@pytest.mark.parametrize("servers, holders", [(1, [0, 1, 2]), (2, [2, 3])])
def test_they_hold_rows_of_a_scripts_tables(tmp_path, servers, holders):
    status, out, err = run(tmp_path, TABLE, servers=servers)
    assert status == 0, err
    lines = out.splitlines()
    assert sum("goes on" in line for line in lines) == WORKERS  # a server's call of Table() does not return
    assert sum(line.endswith(f"{holders} {{{5 * WORKERS}}} {WORKERS}") for line in lines) == WORKERS, out


def test_one_that_holds_rows_and_is_killed_ends_the_run(tmp_path):
    script = "import os\nif os.environ['SHOAL_ROLE'] == 'server': open('pid', 'w').write(str(os.getpid()))\n" + TABLE.replace("import os, sys\n", "import sys\n", 1)
    status, _, err = run(tmp_path, script, "kill")
    assert status == 3 and "rank 2 failed first: killed by signal 9 (KILL)" in err.splitlines()[-1], err


@pytest.mark.parametrize("plan, holders", [("servers:1", [0, 1]), ("ps", [0, 1, 2])])
def test_beside_a_model_they_hold_rows_where_they_step_it(tmp_path, plan, holders):
    status, out, err = run(tmp_path, TRAIN.replace("""sorted({unit["way"] for unit in json.loads(net.plan)["units"]})""", "[]") + TABLE, 2, SHOAL_PLAN=plan)
    assert status == 0, err
    assert sum(line.endswith(f"{holders} {{{5 * WORKERS}}} {WORKERS}") for line in out.splitlines()) == WORKERS, out


LOST = """
import os, signal, sys, torch, shoal, tiny
torch.set_num_threads(1)
shoal.init()
open(f"pid-{shoal.rank()}", "w").write(str(os.getpid()))
net, optimizer = tiny.wrap(tiny.model())
for step in range(1000000):
    tiny.step(net, optimizer, step, shoal.rank())
    if shoal.rank() == 1 and step == 5:
        if sys.argv[1] == "raises":
            raise ValueError("no more data")
        os.kill(int(open(f"pid-{sys.argv[1]}").read()), signal.SIGKILL)
"""


@pytest.mark.parametrize("lost", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_member_that_is_killed_ends_the_run(tmp_path, lost):
    status, _, err = run(tmp_path, LOST, lost)
    assert status == 3, err
    assert f"rank {lost} failed first: killed by signal 9 (KILL)" in err.splitlines()[-1]


def test_a_worker_that_fails_ends_the_run(tmp_path):
    status, _, err = run(tmp_path, LOST, "raises")
    assert status == 1, err
    assert "rank 1 failed first: exit status 1" in err.splitlines()[-1] and "no more data" in err


SAVES = """
import os, torch, shoal, tiny
torch.set_num_threads(1)
net, optimizer = tiny.wrap(tiny.model())
kept = shoal.Checkpoints("kept")
step = 0
while True:
    step += 1
    tiny.step(net, optimizer, step, shoal.rank())
    due = shoal.checkpoint_due()
    if step == 3 and shoal.rank() == 0:
        print("under way", flush=True)
    if due:
        kept.save(step, net, optimizer, step=step)
"""


def test_a_server_stays_while_workers_save_at_term(tmp_path):
    process = launch(WORKERS, [sys.executable, "-c", SAVES], flags=["--servers", "1"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    killer = threading.Timer(PATIENCE, process.kill)
    killer.start()
    assert process.stdout.readline() == "[0] under way\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    killer.cancel()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "failed" not in err and list((tmp_path / "kept").glob("step-*/index.json")), err


TOLD = """
import os, signal, torch, shoal, tiny
torch.set_num_threads(1)
shoal.init()
open(f"pid-{shoal.rank()}", "w").write(str(os.getpid()))
net, optimizer = tiny.wrap(tiny.model())
step = 0
while True:
    step += 1
    tiny.step(net, optimizer, step, shoal.rank())
    if step == 3 and shoal.rank() == 0:
        os.kill(int(open("pid-2").read()), signal.SIGTERM)
    if shoal.checkpoint_due():
        shoal.save("state", net, optimizer, step=step)
"""


def test_a_server_that_is_told_to_end_has_the_workers_save_first(tmp_path):
    status, _, err = run(tmp_path, TOLD)
    assert status == 128 + signal.SIGTERM and (tmp_path / "state" / "index.json").exists(), err


def test_what_was_saved_goes_on(tmp_path):
    script = TRAIN.replace("for step in range(int(sys.argv[1])):", "done = shoal.load('state', net, optimizer)['step'] if sys.argv[2] == 'on' else 0\n"
                           "for step in range(done, int(sys.argv[1])):") + "shoal.save('state', net, optimizer, step=int(sys.argv[1]))\n"
    for steps, how in [(4, "anew"), (8, "on")]:
        status, _, err = run(tmp_path, script, steps, how)
        assert status == 0, err
    assert os.path.exists(tmp_path / "state" / "index.json")
    assert tiny.equal(torch.load(tmp_path / "end-1.pt")[0], alone(8))


def test_a_process_group_has_no_servers(tmp_path):
    script = f"import torch.distributed as d, shoal; d.init_process_group('shoal', init_method='file://{tmp_path}/store', rank=0, world_size=1)"
    ended = subprocess.run([sys.executable, "-c", script], env={**os.environ, "SHOAL_ROLE": "server"}, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("shoal: SHOAL_ROLE=server: a process group has no members that only serve")
