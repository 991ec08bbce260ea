"""Traces with the real SDK, from a call into a worker of the kit, and over a hand-over into one of Celery."""

import json

import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from redis_kit.queues import Queue, chain
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import fleet, tasks

TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736
pytestmark = pytest.mark.once


@pytest.fixture
def caller(project):
    """A request whose trace began elsewhere, as the context of a ``with`` statement."""
    project.kit.options(TRACING=True)
    context = SpanContext(TRACE, 0xB7AD6B7169203331, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return trace.use_span(NonRecordingSpan(context))


def test_trace_goes_on_in_worker_processes_and_over_a_hand_over(project, caller, journal, tmp_path, monkeypatch):
    project.options(QUEUE_OPTIONS={"mail": {"SINK": "celery"}}, IMPORTS=["tests.queues.support.traced"])
    spans = tmp_path / "spans"
    monkeypatch.setenv("SPANS", str(spans))
    project.start_celery()
    project.start_worker("--queue-name", "default,mail")
    with caller:
        tasks.note.using(queue_name="mail").enqueue("by_celery")
        chain(tasks.note.step("first"), tasks.note.step("second")).enqueue()
    wait_for(lambda: spans.exists() and spans.read_text().count("\n") >= 3, timeout=60)
    found = [json.loads(line) for line in spans.read_text().splitlines()]
    assert {span["context"]["trace_id"] for span in found} == {f"0x{TRACE:032x}"}
    assert sorted(span["name"] for span in found) == ["process default", "process default", "process mail"]
    assert {span["attributes"]["messaging.redis_kit.task"] for span in found} == {tasks.note.module_path}
    by_celery, *others = (journal.lines(name=name, step="end")[0].pid for name in ("by_celery", "first", "second"))
    assert by_celery not in others


def test_tasks_of_celery_get_the_context_as_headers(project, caller):
    project.options(QUEUE_OPTIONS={"mail": {"SINK": "celery"}})
    queue = Queue("celery")
    with caller:
        fleet.delayed.apply_async(("a",), countdown=3600, headers={"mine": "1"})
        body = {"task": fleet.plain.name, "trace": {"traceparent": f"00-{TRACE:032x}-b7ad6b7169203331-01"}}
    Queue("mail").put(body)
    for job in queue.peek(state="scheduled"):
        queue.run_now(job.id)
    assert drain("celery", "mail") == 2
    headers = [message.headers for message in project.sent()]
    assert [each["traceparent"][:35] for each in headers] == [f"00-{TRACE:032x}"] * 2
    assert [each.get("mine") for each in headers] == ["1", None]


def test_nothing_is_added_without_the_option(project):
    fleet.delayed.apply_async(("a",), countdown=3600)
    (job,) = Queue("celery").peek(state="scheduled")
    assert "trace" not in json.loads(job.body)
