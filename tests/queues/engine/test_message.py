"""The messages of tasks: what is stored of a call, and what a feature adds to it."""

import pytest

from redis_kit.queues.engine import message
from redis_kit.queues.engine.message import Extra, Message
from redis_kit.queues.errors import CorruptMessage, NewerMessage

EXTRA = Extra(7, "more", [1, "x"])


def test_call_comes_back_as_it_was():
    body = message.dumps("shop.tasks.send", [1], {"to": "a"}, expires=5, tags=("billing",), headers={"tenant": 1})
    assert message.loads(body) == Message("shop.tasks.send", [1], {"to": "a"}, 5, headers={"tenant": 1})
    assert (message.task_of(body), message.tags_of(body)) == ("shop.tasks.send", ("billing",))
    assert message.dumper("shop.tasks.send")([1], {}) == message.dumps("shop.tasks.send", [1], {})


def test_extra_of_a_feature_is_for_processes_that_have_it(monkeypatch):
    body = message.dumps("shop.tasks.send", [], {}, extra=EXTRA, tags=("billing",))
    with pytest.raises(NewerMessage, match="version 7"):
        message.loads(body)
    assert (message.reads(1), message.reads(7)) == (True, False)
    monkeypatch.setattr(message, "message_fields", lambda: {7: "more"})
    assert message.loads(body).extra == [1, "x"]
    assert message.tags_of(body) == ("billing",)
    assert message.reads(7)


@pytest.mark.parametrize("version", ["1", 0, -1, 2**31, None, 2.5])
def test_message_of_a_version_that_does_not_exist_is_corrupt(version):
    with pytest.raises(CorruptMessage, match="which does not exist"):
        message.loads(message.payload.dumps({"task": "x", "v": version}))
