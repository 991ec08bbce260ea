"""What a supervisor reads of a child that is gone."""

import threading

import pytest

from redis_kit.queues.worker.shared.status_board import Running, StatusBoard
from tests.fixtures.fork_server import run_python


@pytest.fixture
def board():
    with_two = StatusBoard(2, room=1000)
    yield with_two
    with_two.close()


def test_busy_slots_are_told_with_what_they_run(board):
    assert board.running() == []
    board.begin(0, 1, "worker/claim.1/5", "a", 12.5)
    board.begin(1, 300, "t", "b\udcff", None)
    assert board.running() == [Running(1, "worker/claim.1/5", "a", 12.5), Running(300, "t", "b\udcff", None)]
    board.end(0)
    assert [one.id for one in board.running()] == ["b\udcff"]
    board.begin(1, 0, "", "next", 0.0)
    assert board.running() == [Running(0, "", "next", 0.0)]


def test_job_with_endless_names_keeps_its_deadline_and_harms_no_neighbour(board):
    board.begin(1, 0, "t", "neighbour", None)
    board.begin(0, 1, "token", "x" * 5000, 9.0)
    assert board.running() == [Running(1, "", "", 9.0), Running(0, "t", "neighbour", None)]
    board.begin(0, 1, "t", "y" * 1001, 9.0)
    assert board.running() == [Running(1, "t", "y" * 1001, 9.0), Running(0, "t", "neighbour", None)]


def test_outcomes_stay_until_they_are_answered(board):
    board.note(b"a")
    board.note(b"b")
    board.turn()
    board.note(b"c")
    assert board.noted() == [b"a", b"b", b"c"]
    board.forget()
    assert board.noted() == [b"c"]
    board.turn()
    board.note(b"d")
    board.forget()
    board.turn()
    board.forget()
    assert board.noted() == []


def test_what_nobody_answered_is_kept_with_what_came_later(board):
    board.note(b"a")
    board.turn()
    board.note(b"b")
    board.turn()  # the call with "a" failed: this one is about both
    board.note(b"c")
    assert board.noted() == [b"a", b"b", b"c"]
    board.forget()
    assert board.noted() == [b"c"]


def test_full_log_says_so_and_loses_nothing(board):
    taken = [bytes([number]) * 96 for number in range(9) if board.note(bytes([number]) * 96)]
    assert len(taken) == 5
    board.turn()
    more = [bytes([number]) * 96 for number in range(100, 109) if board.note(bytes([number]) * 96)]
    assert len(more) == 5
    board.turn()  # no room to join them
    assert board.noted() == taken + more
    board.forget()
    assert board.noted() == more
    board.turn()
    board.forget()
    assert board.noted() == []
    assert not board.note(b"x" * 497)
    assert board.note(b"x" * 496)


def test_jobs_are_counted_by_all_threads():
    board = StatusBoard(1)
    threads = [threading.Thread(target=lambda: [board.end(0, 2) for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert board.done == 16_000
    board.close()


def test_what_a_killed_process_leaves_is_whole():
    done = run_python(["-m", "tests.queues.support.board_writer", 60])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5  # it was in the middle of a job
