"""The page of hand-overs: what other systems took, and what they did not."""

import sys
import types
from datetime import datetime

import pytest

from redis_kit.core import flow
from redis_kit.core.panels import Figure, Table
from redis_kit.queues import Queue
from redis_kit.queues.features.handover.page import HandOversPanel
from redis_kit.queues.features.handover.routes import COUNT_HANDOVERS
from redis_kit.queues.inspection import hand_overs
from redis_kit.queues.tasks import registry


def count(name, *, sent=0, failed=0, error="", to=""):
    queue = Queue(name)
    queue.put(1)
    queue.run_flow(flow.single(COUNT_HANDOVERS(queue.key(""), sent, failed, error, to, 60_000)))


def shown():
    content = list(HandOversPanel().content())
    (table,) = [part for part in content if isinstance(part, Table)]
    return {str(part.label): part for part in content if isinstance(part, Figure)}, table


@pytest.fixture(autouse=True)
def _sink(kit, monkeypatch):
    monkeypatch.setattr(registry, "sinks", {"orders": "celery"})


def test_page_without_hand_overs_says_so(kit):
    figures, table = shown()
    assert (figures["Handed over"].value, table.rows) == (0, [])
    assert str(table.empty) == "No job was handed over to another system."


def test_page_of_a_project_without_sinks_asks_nothing(kit, trips, monkeypatch):
    monkeypatch.setattr(registry, "sinks", {})
    monkeypatch.delitem(sys.modules, "celery", raising=False)
    figures, table = shown()
    assert (figures, str(table.empty)) == ({}, "No queue hands its jobs over to another system.")
    assert not trips


def test_queues_show_what_was_taken_and_the_last_error(kit):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SINK": "celery"}}})
    count("mail", sent=5)
    count("mail", sent=2, failed=1, error="OperationalError: <down>", to="celery")
    count("news", sent=1)
    count("news", failed=3, error="x")
    figures, table = shown()
    assert (figures["Handed over"].value, figures["Not taken"].value) == (8, 4)
    rows = {row[0].value: row for row in table.rows}
    assert rows["mail"][1:3] == ("celery", 7)
    assert rows["mail"][5].lines[1] == "OperationalError: <down>"
    assert isinstance(rows["news"][5].lines[0], datetime)
    assert rows["news"][1] == ""


def test_sink_is_shown_that_only_the_worker_knows(kit, monkeypatch):
    monkeypatch.setattr(registry, "sinks", {})
    monkeypatch.setitem(sys.modules, "celery", types.ModuleType("celery"))
    count("orders", sent=1, to="celery")
    count("labels", failed=1, error="x", to="shop.sinks.Printer")
    _, table = shown()
    assert {row[0].value: row[1] for row in table.rows} == {"labels": "shop.sinks.Printer", "orders": "celery"}


def test_queue_that_fails_now_is_an_alarm(kit):
    count("mail", sent=1)
    count("mail", failed=1, error="x")
    kit.client.hset(Queue("mail").key("handovers"), "sent_at", 1)
    figures, _ = shown()
    assert (figures["Failing now"].value, figures["Failing now"].hint, figures["Failing now"].alarm) == (
        1,
        "mail",
        True,
    )


def test_counts_of_queues_that_hand_over_nothing_are_left_out(any_kit, twin):
    class Counts:
        def read(self, names):
            return hand_overs(names)

        async def aread(self, names):
            from redis_kit.queues.inspection import ahand_overs

            return await ahand_overs(names)

    count("mail", sent=2, failed=1, error="down")
    Queue("news").put(1)
    found = twin(Counts().read, ["mail", "news"])
    assert list(found) == ["mail"]
    assert (found["mail"].sent, found["mail"].failed, found["mail"].error) == (2, 1, "down")
    assert twin(Counts().read, []) == {}


def test_queue_with_a_damaged_key_does_not_hide_the_others(kit):
    count("mail", sent=2)
    Queue("news").put(1)
    kit.client.set(Queue("news").key("handovers"), "x")
    assert list(hand_overs(["mail", "news"])) == ["mail"]
    assert shown()[0]["Handed over"].value == 2
