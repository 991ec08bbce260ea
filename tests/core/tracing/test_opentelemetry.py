"""Spans with the real SDK and an exporter in memory, from the call through the job."""

import json
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from redis_kit.core.checks.configuration import check_settings
from redis_kit.core.tracing import opentelemetry
from redis_kit.core.tracing.spans import ids
from redis_kit.operations.logs import JSONFormatter
from redis_kit.queues import Queue, Retry, task
from redis_kit.queues.engine import message
from redis_kit.testing.jobs import drain

EXPORTER = InMemorySpanExporter()
seen = []


@task
def note_ids():
    seen.append(ids())


@task
async def note_ids_async():
    seen.append(ids())


@task(max_attempts=1)
def fail():
    raise LookupError("no such article")


@task
def retry():
    raise Retry("later")


@pytest.fixture(scope="module")
def provider():
    """A provider of the SDK. There is one for the process: the API allows no second one."""
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(made)
    return made


@pytest.fixture
def traced(kit, provider, transactional_db):
    """The kit with spans that are recorded."""
    kit.options(TRACING=True)
    EXPORTER.clear()
    seen.clear()
    return kit


def spans():
    return {span.name: span for span in EXPORTER.get_finished_spans()}


def test_job_belongs_to_the_trace_of_its_call(traced, provider):
    with provider.get_tracer("test").start_as_current_span("request"):
        result = note_ids.enqueue()
    assert drain() == 1
    request, sent, job = (spans()[name] for name in ("request", "send default", "process default"))
    assert request.context.trace_id == sent.context.trace_id == job.context.trace_id
    assert sent.parent.span_id == request.context.span_id
    assert job.parent.span_id == sent.context.span_id
    assert (sent.kind, job.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert job.attributes["messaging.message.id"] == result.id
    assert job.attributes["messaging.redis_kit.task"] == note_ids.module_path
    assert job.attributes["messaging.redis_kit.attempt"] == 1
    assert job.status.status_code == StatusCode.UNSET
    assert seen == [{"trace_id": f"{job.context.trace_id:032x}", "span_id": f"{job.context.span_id:016x}"}]


def test_coroutine_runs_in_the_span(traced):
    note_ids_async.enqueue()
    assert drain() == 1
    assert seen[0]["span_id"] == f"{spans()['process default'].context.span_id:016x}"


def test_failure_is_the_status_of_the_span(traced):
    fail.enqueue()
    drain()
    job = spans()["process default"]
    assert (job.status.status_code, job.status.description) == (StatusCode.ERROR, "no such article")
    assert job.attributes["error.type"] == "LookupError"
    assert [event.name for event in job.events] == ["exception"]


def test_log_of_a_failed_attempt_has_the_ids_of_its_span(traced, caplog):
    caplog.handler.setFormatter(JSONFormatter())
    fail.enqueue()
    drain()
    context = spans()["process default"].context
    (line,) = [json.loads(line) for line in caplog.text.splitlines() if "is dead" in line]
    assert (line["trace_id"], line["span_id"]) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    assert line["task"] == fail.module_path


def test_postponed_job_has_not_failed(traced):
    retry.enqueue()
    drain()
    job = spans()["process default"]
    assert job.status.status_code == StatusCode.UNSET
    assert job.attributes["messaging.redis_kit.postponed_by"].endswith("Retry")


def test_message_has_the_context_of_w3c(traced):
    note_ids.enqueue()
    (job,) = Queue("default").peek(state="ready")
    sent = spans()["send default"].context
    (context,) = json.loads(job.body)["trace"].values()
    assert context.startswith(f"00-{sent.trace_id:032x}-{sent.span_id:016x}-0")


def test_nothing_is_added_while_tracing_is_off(kit, provider, transactional_db, commands):
    EXPORTER.clear()
    with commands(kit) as sent:
        note_ids.enqueue()
    (job,) = Queue("default").peek(state="ready")
    assert "trace" not in json.loads(job.body)
    assert drain() == 1
    assert EXPORTER.get_finished_spans() == ()
    kit.options(TRACING=True)
    with commands(kit) as traced:
        note_ids.enqueue()
    assert traced == sent


@pytest.mark.parametrize(
    "found", [{"traceparent": "x"}, {"traceparent": 5}, {"traceparent": "00-0-0-00"}, "text", [1], {}]
)
def test_damaged_context_begins_a_new_trace(traced, found):
    body = {**json.loads(message.dumps(note_ids.module_path, [], {})), "trace": found}
    Queue("default").put(body)
    assert drain() == 1
    assert spans()["process default"].parent is None


def test_older_process_ignores_the_context(traced):
    """A process without this field reads the message: it ignores fields that it does not know."""
    note_ids.enqueue()
    (job,) = Queue("default").peek(state="ready")
    call = message.loads(job.body)
    assert (call.task, call.args, call.kwargs) == (note_ids.module_path, [], {})
    assert message.loads(message.dumps("a.b", [], {})).trace == {}


def test_failing_sampler_does_not_stop_a_call(traced, monkeypatch, caplog):
    def broken():
        raise ValueError("of the project")

    monkeypatch.setattr(opentelemetry, "_tracer", broken)
    assert opentelemetry.sent("a.b", "default") == {}
    assert "The span of an enqueued call failed." in caplog.text


def test_tracing_without_the_package_is_an_error_of_the_settings(kit, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    kit.options(TRACING=True)
    (found,) = check_settings()
    assert found.id == "redis_kit.E031"
    assert "django-redis-kit[opentelemetry]" in found.hint
