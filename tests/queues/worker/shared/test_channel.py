"""The line between two processes."""

import os
import threading

import pytest

from redis_kit.queues.worker.shared.channel import MOST, pair
from tests.fixtures.process import wait_for


@pytest.fixture
def ends():
    found = pair()
    yield found
    for one in found:
        one.close()


def test_words_arrive_in_order_and_nothing_else(ends):
    upper, lower = ends
    assert lower.heard() == []
    upper.say("wake", 0, "1.500")
    upper.say("quiet")
    assert lower.heard() == [("wake", "0", "1.500"), ("quiet",)]
    lower.say("up")
    assert upper.heard() == [("up",)]
    assert not upper.ended


def test_line_that_comes_in_pieces_is_one(ends):
    upper, lower = ends
    upper._socket.send(b"can")
    assert lower.heard() == []
    upper._socket.send(b"cel 1 a")
    upper._socket.send(b"b\nsto")
    assert lower.heard() == [("cancel", "1", "ab")]
    upper._socket.send(b"p\n")
    assert lower.heard() == [("stop",)]


def test_reader_waits_for_words_and_ends_with_the_line(ends):
    upper, lower = ends
    found = []
    thread = threading.Thread(target=lambda: found.extend(lower.read()))
    thread.start()
    for number in range(100):
        upper.say("wake", 0, number)
    wait_for(lambda: len(found) == 100)
    assert thread.is_alive()
    upper.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [int(words[2]) for words in found] == list(range(100))


def test_end_is_noticed_without_waiting_and_talking_to_nobody_does_no_harm(ends):
    upper, lower = ends
    lower.say("recycle")
    lower.close()
    assert upper.heard() == [("recycle",)]
    assert upper.ended
    assert upper.say("stop")
    assert upper.heard() == []


def test_sender_does_not_wait_for_a_reader_who_gets_all_of_it_later(ends):
    upper, lower = ends
    taken = 0
    while upper.say("cancel", 0, f"{taken:0200}"):
        taken += 1
    assert taken * 200 > MOST
    heard = []

    def read():
        upper.flush()
        heard.extend(lower.heard())
        return len(heard) == taken

    wait_for(read)
    assert [int(words[2]) for words in heard] == list(range(taken))
    assert upper.say("stop")
    assert lower.heard() == [("stop",)]


TORN = b"\x80\xff".decode("utf-8", "surrogateescape")
IDS = [TORN, "a b", "a\nnow", "a\r\nstop\n", "100%", "a%0Anow", "", " ", "\u00e9"]


@pytest.mark.parametrize("id", IDS, ids=ascii)
def test_id_passes_whatever_bytes_it_holds_and_says_nothing_else(ends, id):
    upper, lower = ends
    upper.say("cancel", 0, id)
    upper.say("quiet")
    assert lower.heard() == [("cancel", "0", id), ("quiet",)]


def test_neither_end_is_left_to_a_program_that_a_task_runs(ends):
    assert not any(os.get_inheritable(end.fileno()) for end in ends)
