"""PyTorch's own ways to shard a model run on the backend without a change, and as on gloo."""

import pytest

import framework_cases as cases
from members import Members, of_module

SIZE, STEPS = 4, 50


members = of_module(SIZE, timeout=60.0)


def near(pairs, within=1e-6):
    return all(abs(ours - theirs) <= within for ours, theirs in pairs)


def fresh(size, fn, *arguments):
    group = Members(size, timeout=60.0)
    try:
        return group.run(fn, *arguments)
    finally:
        group.close()


def mean(losses_of_members):
    """Of the whole batch: members have equal parts of it."""
    return [sum(losses) / len(losses) for losses in zip(*losses_of_members)]


def test_fsdp_trains_as_on_gloo_and_two_go_on_from_what_four_saved(members, tmp_path):
    results = members.run(cases.fsdp, STEPS, str(tmp_path / "saved"))
    for losses, _ in results:
        assert near(losses)
    (first, _), *_, (last, _) = results[0][0]
    assert last < first / 2  # it learns
    expected = mean([after for _, after in results])
    resumed = mean(fresh(2, cases.fsdp_resumed, STEPS, str(tmp_path / "saved")))
    assert near(zip(resumed, expected), 1e-5)


def test_fsdp_on_a_mesh_of_two_dimensions(members):
    for losses in members.run(cases.fsdp_hybrid):
        assert near(losses, 1e-5)


def test_a_checkpoint_written_in_the_background(members, tmp_path):
    expected = mean(members.run(cases.saved_in_the_background, str(tmp_path / "saved")))
    assert near(zip(mean(fresh(2, cases.fsdp_resumed, 1, str(tmp_path / "saved"))), expected), 1e-5)


def test_a_mesh_of_two_dimensions(members):
    rows = [101.0, 1010.0]
    columns = [11.0, 1100.0]
    assert members.run(cases.mesh) == [[rows[r % 2], columns[r // 2], 1111.0] for r in range(SIZE)]


def test_distributed_tensors(members):
    for differences in members.run(cases.tensors):
        assert max(differences) <= 1e-5


def test_tensor_parallel(members):
    for losses in members.run(cases.tensor_parallel):
        assert near(losses)


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B"])
def test_pipeline(members, schedule):
    for differences in members.run(cases.pipeline, schedule):
        assert max(differences) <= 1e-6
