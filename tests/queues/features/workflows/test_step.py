"""The part of a message that names a step of a workflow."""

import pytest

from redis_kit.queues.engine import message
from redis_kit.queues.errors import CorruptMessage, NewerMessage
from redis_kit.queues.features.workflows import step as steps
from redis_kit.queues.features.workflows.step import StepCall, filled, step_of

CALL = StepCall("abc-DEF_12", 7, True, ((0, 3), ("rows", [4, [5, 3]]), ("failed", {"failures": 2})))


def test_message_of_a_step_comes_back_as_it_was_and_its_beginning_names_it():
    body = message.dumps("shop.tasks.pay", [None], {"rows": None, "failed": None}, extra=CALL.extra())
    assert steps.of_call(message.loads(body)) == CALL
    assert step_of(body[:512])[:2] == CALL[:2]
    assert (CALL.numbers(), CALL.group()) == ([3, 4, 5], 2)
    assert step_of(message.dumps("shop.tasks.pay", [1], {})) is None


def test_worker_without_workflows_leaves_steps_to_others(monkeypatch):
    body = message.dumps("shop.tasks.pay", [], {}, extra=CALL.extra())
    monkeypatch.setattr(message, "message_fields", dict)
    with pytest.raises(NewerMessage, match="version 2"):
        message.loads(body)


@pytest.mark.parametrize(
    "damaged",
    [
        [],
        ["a b", 1, 0, []],
        ["a", "1", 0, []],
        ["a", 1, 0, [[1]]],
        ["a", 1, 0, [[1, {"x": 1}]]],
        ["a", 1, 0, [[1, {"failures": None}]]],
        ["a", 1, 0, [[None, 1]]],
    ],
)
def test_damaged_step_is_a_corrupt_message(damaged):
    body = message.payload.dumps({"task": "x", "v": 2, "workflow": damaged})
    with pytest.raises(CorruptMessage, match="not a message of a workflow"):
        steps.of_call(message.loads(body))


def test_message_of_a_step_without_one_is_corrupt():
    with pytest.raises(CorruptMessage, match="version 2 without 'workflow'"):
        message.loads(message.payload.dumps({"task": "x", "v": 2}))


def test_arguments_are_filled_with_results_and_none_for_what_failed():
    assert filled([4, [5, 3]], {4: "d", 3: None}, []) == ["d", [None, None]]
    assert filled({"failures": 2}, {}, [{"id": "x"}]) == [{"id": "x"}]
