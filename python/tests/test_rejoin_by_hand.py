"""Others in lost places without a launcher: `shoal meet` holds the meeting place, and plain processes know rank, size and where it is. Here this test is who
starts them. The bits are those of an undisturbed run of `shoal run`. And the meeting place is killed: who has met does not need it, until somebody is to come."""

import contextlib
import json
import subprocess
import sys

import pytest

from pool import environment, program
from test_rejoin import KILL, SCRIPT, undisturbed  # noqa: F401 (a fixture)

BY_HAND = SCRIPT.replace('"SHOAL_GENERATION" in os.environ', "shoal.session.current().arriving")


@contextlib.contextmanager
def meeting(members):
    """How to start a member: start(folder, rank, arguments, **variables); and the meeting place's process, which a test may kill."""
    alone = {name: value for name, value in environment().items() if not name.startswith("SHOAL_")}
    place = subprocess.Popen([program(), "meet", "-n", str(members)], env=alone, stdout=subprocess.PIPE, text=True)
    here = dict(one.split("=", 1) for one in place.stdout.readline().split())
    started = []

    def start(folder, rank, arguments, **variables):
        told = {"SHOAL_RANK": str(rank), "SHOAL_ON_PEER_LOST": "rejoin", "OMP_NUM_THREADS": "1", **here, **variables}
        started.append(subprocess.Popen([sys.executable, "train.py", *arguments], cwd=folder, env={**alone, **told}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True))
        return started[-1]

    try:
        yield start, place
    finally:
        for one in started:
            one.kill()
            one.communicate()
        place.terminate()
        assert place.wait(30) in (0, -KILL)


def told_by(process):
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return json.loads(said.split("told ")[1])


ALL_FAULTS = [(1, 4, "step", KILL), (1, 0, "arriving", KILL), (0, 8, "begin", KILL)]


@pytest.mark.parametrize("faults", [ALL_FAULTS[2:], pytest.param(ALL_FAULTS, marks=pytest.mark.slow)], ids=["rank 0", "who came itself, too"])
def test_a_process_started_by_hand_takes_the_lost_place(tmp_path, undisturbed, faults):  # noqa: F811
    course, plan = undisturbed
    (tmp_path / "train.py").write_text(BY_HAND)
    arguments = [plan, "12", json.dumps(faults)]
    with meeting(3) as (start, _):
        members = [start(tmp_path, rank, arguments) for rank in range(3)]
        for victim, *_ in faults:
            members[victim].communicate(timeout=120)
            assert members[victim].returncode == -KILL
            members[victim] = start(tmp_path, victim, arguments)
        assert [told_by(member) for member in members] == 3 * [course]


WAITS = """    if state.step == 1 and shoal.rank() == 0:
        print("in the middle", flush=True)
        sys.stdin.readline()
"""


def test_a_rank_that_is_there_is_not_taken(tmp_path):
    """Who comes with the rank of one that lives waits for the others to lose that one, and is refused; they do not hear of it."""
    begin = '    fault("begin", state.step)\n'
    (tmp_path / "train.py").write_text(BY_HAND.replace(begin, begin + WAITS))
    arguments = ["ring", "3", "[]"]
    with meeting(2) as (start, _):
        members = [start(tmp_path, rank, arguments) for rank in range(2)]
        while members[0].stdout.readline() != "in the middle\n":
            assert members[0].poll() is None
        twin = start(tmp_path, 1, arguments, SHOAL_JOIN_TIMEOUT="1")
        said, _ = twin.communicate(timeout=60)
        assert twin.returncode == 2
        assert "join: rank 1 is there, and the others have not lost it (give every member a rank of its own" in said
        members[0].stdin.write("go on\n")
        members[0].stdin.flush()
        assert told_by(members[0]) == told_by(members[1])


def killed_meeting_place(tmp_path, arguments, policy):
    """What three members say that train on when their meeting place was killed in the middle of a step, and how they end."""
    begin = '    fault("begin", state.step)\n'
    (tmp_path / "train.py").write_text(BY_HAND.replace(begin, begin + WAITS))
    with meeting(3) as (start, place):
        members = [start(tmp_path, rank, arguments, SHOAL_ON_PEER_LOST=policy, SHOAL_JOIN_TIMEOUT="5") for rank in range(3)]
        while members[0].stdout.readline() != "in the middle\n":
            assert members[0].poll() is None
        place.kill()
        place.wait()
        members[0].stdin.write("go on\n")
        members[0].stdin.flush()
        said = [member.communicate(timeout=120)[0] for member in members]
        return said, [member.returncode for member in members]


def test_a_killed_meeting_place_costs_nothing(tmp_path, undisturbed):  # noqa: F811
    """All steps are taken, with the bits of an undisturbed run."""
    course, plan = undisturbed
    said, ended = killed_meeting_place(tmp_path, [plan, "12", "[]"], "rejoin")
    assert ended == [0, 0, 0], said
    assert [json.loads(one.split("told ")[1]) for one in said] == 3 * [course]


@pytest.mark.slow
def test_members_go_on_without_a_lost_one_and_without_the_meeting_place(tmp_path):
    said, ended = killed_meeting_place(tmp_path, ["ring", "12", json.dumps([(1, 6, "backward", KILL)])], "shrink")
    assert ended == [0, -KILL, 0], said
    told = [json.loads(said[rank].split("told ")[1]) for rank in (0, 2)]
    assert told[0] == told[1]
    assert told[0][1] == list(range(12)) and told[0][2] == [0, 2]


def test_nobody_comes_in_a_lost_place_where_the_meeting_place_is_gone_and_the_others_say_so(tmp_path):
    said, ended = killed_meeting_place(tmp_path, ["ring", "12", json.dumps([(1, 6, "backward", KILL)])], "rejoin")
    assert ended == [3, -KILL, 3], said
    assert "no coordinator of this job answers at" in said[0]
