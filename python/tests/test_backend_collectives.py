"""The c10d backend's collectives give what gloo's give, exactly: inputs are small whole numbers."""

import pytest

import backend_cases as cases
from members import Members


@pytest.fixture(scope="module", params=[2, 3, 5], ids=lambda size: f"{size}_members")
def members(request):
    group = Members(request.param)
    yield group
    group.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_sequences_equal_gloo(members, seed):
    assert members.run(cases.random_sequence, seed, 40) == [[]] * members.size


def test_every_type_and_op_equals_gloo(members):
    assert members.run(cases.every_type_and_op) == [[]] * members.size
