"""How training ends when something is wrong: one clear line, last on stderr, and an exit code that says whose turn it is."""

import socket
import subprocess
import sys

import pytest
import torch
from torch import nn

import shoal
import tiny
from pool import environment, launch


def script(body: str) -> list[str]:
    return [sys.executable, "-c", "import os, signal, sys, time\nimport torch, shoal, tiny\ntorch.set_num_threads(1)\nshoal.init()\n" + body]


def run_failing(members: int, body: str):
    process = launch(members, script(body), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_an_uncaught_mistake_is_one_line_and_exit_code_2():
    code = subprocess.run(script("shoal.data_parallel(torch.nn.ReLU(), torch.optim.SGD(torch.nn.Linear(1, 1).parameters()))"),
                          capture_output=True, text=True, env=environment())
    assert code.returncode == 0  # alone there is nothing to exchange, and nothing to refuse
    ended = subprocess.run(script("raise shoal.Error('here: this is wrong (do that)', 'invalid_argument', 2)"), capture_output=True,
                           text=True, env=environment())
    assert ended.returncode == 2
    assert ended.stderr == "shoal: here: this is wrong (do that)\n"


def test_the_line_is_told_too_where_torch_distributed_has_put_its_hook_around_ours():
    # It collects what the hooks before it print, to print it afterwards: after our exit there is no afterwards.
    ended = subprocess.run(script("""
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
raise shoal.Error('here: this is wrong (do that)', 'invalid_argument', 2)"""), capture_output=True, text=True, env=environment())
    assert ended.returncode == 2
    assert ended.stderr == "shoal: here: this is wrong (do that)\n"


def test_rules_that_are_wrong_end_a_script_of_torch_distributed_like_any_mistake():
    ended = subprocess.run([sys.executable, "-c", """
import torch, shoal
torch.distributed.init_process_group("shoal", store=torch.distributed.HashStore(), rank=0, world_size=1)"""],
                           capture_output=True, text=True, env={**environment(), "SHOAL_TUNE": "allreduce:@rnig"})
    assert ended.returncode == 2
    assert ended.stderr.startswith('shoal: SHOAL_TUNE: "allreduce:@rnig": no program rnig for all_reduce: ') and ended.stderr.count("\n") == 1
    assert issubclass(shoal.errors.Mistake, torch.distributed.DistBackendError)


def test_what_is_no_model_or_no_optimizer_of_it_is_refused_alone_too():
    net = tiny.model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    shoal.init()
    for model, steps, plan, words in [(42, optimizer, "auto", "the model is a int"), (net, None, "auto", "the optimizer is a NoneType"),
                                      (net, optimizer, 5, "the plan is a int"),
                                      (tiny.model(), optimizer, "auto", "the optimizer steps no parameter of this model")]:
        with pytest.raises(shoal.Error, match=words) as refused:
            shoal.data_parallel(model, steps, plan)
        assert refused.value.exit_code == 2


def without_values():
    net = nn.Linear(4, 4, device="meta")
    with pytest.raises(shoal.Error) as refused:
        shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1))
    return refused.value.exit_code, str(refused.value)


def test_parameters_without_values_are_refused(pool):
    line = 'parameter weight: it is on the meta device and has no values (call module.to_empty(device="cpu") and set them before data_parallel())'
    assert pool(2).run(without_values) == [(2, line)] * 2


# In the first iterations, with all means awaited, and later, by priority, when parameters are stepped one by one.
@pytest.mark.parametrize("plan, step", [("wfbp", 1), ("wfbp", 6), ("p3", 6)])
def test_a_step_that_one_member_leaves_out_is_told(plan, step):
    code, _, err = run_failing(2, f"""
net = tiny.model()
net, optimizer = shoal.data_parallel(net, torch.optim.SGD(net.parameters(), lr=0.1), plan="{plan}")
for step in range(12):
    optimizer.zero_grad()
    tiny.loss(net, step, shoal.rank()).backward()
    if step != {step} or shoal.rank() == 0:
        optimizer.step()
""")
    assert code == 2
    lines = (f"rank 0, step {step + 1}: this member has stepped since its last backward(), another has not (call step() behind the same backward()",
             f"rank 1, step {step + 1}: this member has not stepped since its last backward(), others have (call step() behind the same backward()")
    assert any(line in err for line in lines)  # who says its own first ends the other
    assert "Traceback" not in err


def test_a_damaged_plan_is_refused_alone_too(tmp_path, monkeypatch):
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"ranks": 2')
    monkeypatch.setenv("SHOAL_PLAN", str(damaged))
    with pytest.raises(shoal.Error) as refused:
        tiny.wrap(tiny.model())
    assert str(refused.value).startswith(f"{damaged}: ") and refused.value.exit_code == 2


def test_a_plan_that_nobody_understands_is_named_by_who_said_it(monkeypatch):
    net = tiny.model()
    with pytest.raises(shoal.Error, match='^plan: "rnig" is no plan ') as refused:
        shoal.data_parallel(net, tiny.sgd(net), "rnig")
    assert refused.value.exit_code == 2
    monkeypatch.setenv("SHOAL_PLAN", "auto,2.*=rnig")
    with pytest.raises(shoal.Error, match='^SHOAL_PLAN: there is no way "rnig" '):
        tiny.wrap(net)


def test_a_run_folder_that_cannot_be_made_is_named():
    ended = subprocess.run(script(""), capture_output=True, text=True, env={**environment(), "SHOAL_RUN_DIR": "/proc/nope"})
    assert ended.returncode == 2
    assert ended.stderr.startswith("shoal: SHOAL_RUN_DIR: cannot make /proc/nope: ") and ended.stderr.count("\n") == 1


def test_another_exception_keeps_its_traceback_and_tells_the_others():
    code, _, err = run_failing(2, """
net, optimizer = tiny.wrap(tiny.model())
if shoal.rank() == 1:
    raise ValueError("no such thing")
tiny.loss(net, 0, 0).backward()
optimizer.step()
""")
    assert code != 0
    first = [line for line in err.splitlines() if line.startswith("[0]")]
    assert "rank 1" in first[-1] and "no such thing" in first[-1]
    assert any("Traceback" in line for line in err.splitlines() if line.startswith("[1]"))


def other_model(kind):
    net = tiny.model()
    if shoal.rank() == 1:
        if kind == "shape":
            net[2] = nn.Linear(17, 14)
        elif kind == "type":
            net[2] = net[2].double()
        elif kind == "frozen":
            net[0].bias.requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if kind == "lr":
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1 * (1 + (shoal.rank() == 2)))
    if kind == "betas":
        groups = [{"params": net[0].parameters()}, {"params": net[2:].parameters(), "betas": (0.9, 0.99 + 0.009 * (shoal.rank() == 1))}]
        optimizer = torch.optim.Adam(groups, lr=torch.tensor(0.1))
    if kind == "optimizer" and shoal.rank() == 1:
        optimizer = torch.optim.Adam(net.parameters())
    try:
        shoal.data_parallel(net, optimizer)
    except shoal.Error as error:
        return error.code, str(error)


@pytest.mark.parametrize("kind, words", [
    ("shape", ["rank 1", "2.weight", "[14, 17]", "[13, 17]"]),
    ("type", ["rank 1", "2.weight", "Double", "Float"]),
    ("frozen", ["rank 1", "0.bias"]),
    ("optimizer", ["rank 1", "Adam", "SGD"]),
    ("lr", ["rank 2 has lr 0.2, rank 0 has lr 0.1"]),
    ("betas", ["rank 1 has betas of parameter group 1 (0.9, 0.999), rank 0 has betas of parameter group 1 (0.9, 0.99)"]),
])
def test_members_with_another_model_are_told_apart(pool, kind, words):
    for code, line in pool(3).run(other_model, kind):
        assert code == "mismatch"
        for word in words:
            assert word in line
        assert "\n" not in line


def saved_plan(text_or_path):
    try:
        tiny.wrap(tiny.model(), plan=text_or_path)
    except shoal.Error as error:
        return error.code, str(error)


def test_a_plan_that_is_missing_damaged_or_of_another_model(pool, tmp_path):
    missing = str(tmp_path / "none.json")
    assert all(code == "invalid_argument" and missing in line for code, line in pool(2).run(saved_plan, missing))
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"ranks": 2')
    assert all(code == "invalid_argument" and str(damaged) in line for code, line in pool(2).run(saved_plan, str(damaged)))
    damaged.write_bytes(b"\x00\xe3\xff")
    assert all(code == "invalid_argument" and f"{damaged}: is not text" in line for code, line in pool(2).run(saved_plan, str(damaged)))


def test_models_without_anything_to_train(pool):
    for code, line in pool(2).run(untrained, 0):
        assert code == "invalid_argument" and "no parameter" in line


def untrained(_):
    net = nn.Linear(2, 2).requires_grad_(False)
    try:
        shoal.data_parallel(net, torch.optim.SGD(net.parameters()))
    except shoal.Error as error:
        return error.code, str(error)


def test_members_with_another_setting_are_told_apart():
    other = ["sh", "-c", 'SHOAL_TIMEOUT=$((50 + SHOAL_RANK)) exec "$@"', "sh", *script("")]
    process = launch(2, other, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    host = socket.gethostname()
    for own, peer in ((0, 1), (1, 0)):
        assert (f"[{own}] shoal: join: rank {peer} ({host}) has SHOAL_TIMEOUT {50 + peer} s, rank {own} ({host}) has SHOAL_TIMEOUT {50 + own} s "
                "(it must be the same on all members)") in err.splitlines()


@pytest.mark.parametrize("value", ["soon", "-1", "0"])
def test_a_timeout_that_is_no_number(value):
    ended = subprocess.run(script(""), capture_output=True, text=True, env={**environment(), "SHOAL_TIMEOUT": value})
    assert ended.returncode == 2
    assert ended.stderr.startswith("shoal: SHOAL_TIMEOUT:") and value in ended.stderr
