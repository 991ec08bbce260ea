"""Hand-overs to Celery: what is sent for which job, and what happens while its broker is away."""

from datetime import timedelta

import pytest

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.features.celery import broker
from redis_kit.queues.features.celery.broker import Publisher
from redis_kit.queues.features.celery.stored_message import TaskCall
from redis_kit.queues.features.handover import routes
from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.process import WorkerProcess
from redis_kit.testing.jobs import drain
from tests.fixtures.process import wait_for
from tests.queues.support import fleet, tasks
from tests.queues.support.in_process import working

RUN = "redis_kit.run"


@pytest.fixture
def mail(project):
    """A queue whose jobs go to Celery."""
    project.options(QUEUE_OPTIONS={"mail": {"SINK": "celery"}, "post": {"SINK": "celery", "CELERY_QUEUE": "letters"}})
    return Queue("mail")


def test_task_of_celery_is_called_by_its_name(project, mail):
    ids = [mail.put({"task": name, "args": [1], "kwargs": {"a": 2}}) for name in (fleet.plain.name, "not.known.here")]
    assert drain("mail") == 2
    sent = project.sent()
    assert [message.headers["id"] for message in sent] == ids
    assert [message.headers["task"] for message in sent] == [fleet.plain.name, "not.known.here"]
    assert {(*message.args, *message.kwargs.items()) for message in sent} == {(1, ("a", 2))}
    assert mail.counts() == QueueCounts(0, 0, 0, 0)


def test_message_that_names_celery_needs_no_options(project):
    id = Queue("default").put({"task": "not.known.here", "args": [1], "sink": "celery"})
    assert drain() == 1
    (message,) = project.sent()
    assert (message.headers["id"], message.args) == (id, [1])


def test_task_of_the_kit_stays_in_its_queue_until_celery_claims_it(project, mail):
    result = tasks.remember.using(queue_name="mail").enqueue(1)
    assert drain("mail") == 1
    (message,) = project.sent()
    assert (message.headers["task"], message.headers["id"]) == (RUN, result.id)
    assert message.args[:2] == ["mail", result.id]
    assert message.args[2].startswith("0 ")
    assert message.headers["ignore_result"] is True
    (job,) = mail.peek(state="scheduled")
    assert (job.id, job.attempts) == (result.id, 0)
    result.refresh()
    assert result.status == "READY"


def test_options_of_the_queue_and_of_the_job_arrive(project, mail):
    Queue("post").put({"task": "a", "expires": 60_000})
    Queue("post").put({"task": "b"}, priority=-100)
    assert drain("post") == 2
    (first,) = project.sent("letters")
    assert first.headers["expires"]
    assert int(first.properties["expiration"]) <= 60_000
    (second,) = project.sent("letters\x06\x169")
    assert second.headers["task"] == "b"


def test_kind_of_the_broker_is_found_out_once(project, mail, monkeypatch):
    made, connect = [], fleet.app.connection_for_write
    monkeypatch.setattr(
        fleet.app, "connection_for_write", lambda *args, **more: made.append(1) or connect(*args, **more)
    )
    mail.put_many([{"task": "a"}] * 5, priority=50)
    assert drain("mail") == 5
    assert len(made) < 5


def test_jobs_are_sent_once_though_the_broker_was_down(project, mail, make_server, monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(routes, "FIRST", 0.05)
    monkeypatch.setattr(broker, "TIMEOUT", 0.5)
    monkeypatch.setitem(broker.LIMITS, "redis", {"socket_timeout": 0.5, "socket_connect_timeout": 0.5})
    server = make_server(tcp=True, persistence=True, data_dir=tmp_path / "broker")
    project.connect(f"redis://127.0.0.1:{server.port}/5")
    with working(WorkerProcess(Options(("mail",), threads=3))):
        mail.put({"task": "a", "args": [0]})
        wait_for(lambda: len(project.sent()) == 1)
        server.stop()
        for number in range(1, 4):
            mail.put({"task": "a", "args": [number]})
        wait_for(lambda: "does not take jobs" in caplog.text)
        server.start()
        wait_for(lambda: len(project.sent()) >= 4)
        server.freeze()
        mail.put({"task": "a", "args": [4]})
        wait_for(lambda: caplog.text.count("does not take jobs") == 2)
        server.thaw()
        wait_for(lambda: {message.args[0] for message in project.sent()} == set(range(5)))
        wait_for(lambda: mail.counts() == QueueCounts(0, 0, 0, 0))
    numbers = [message.args[0] for message in project.sent()]
    assert [numbers.count(number) for number in range(4)] == [1, 1, 1, 1]  # the last one reached a frozen broker
    assert caplog.text.count("takes jobs again") == 2


def test_message_that_the_broker_refuses_waits_and_others_pass(project, mail):
    with project.client() as client:
        client.set("wrong", 1)
        project.options(QUEUE_OPTIONS={"mail": {"SINK": "celery", "CELERY_QUEUE": "wrong"}, "post": {"SINK": "celery"}})
        mail.put({"task": "a"})
        Queue("post").put({"task": "b"})
        assert drain("mail", "post") == 2
        client.delete("wrong")
        assert len([one for one in client.client_list() if one["db"] == "5"]) == 1  # this one
    assert mail.counts().scheduled == 1
    assert [message.headers["task"] for message in project.sent()] == ["b"]


def test_messages_of_a_batch_are_taken_or_refused_each_for_itself(project):
    with project.client() as client:
        calls = [TaskCall("a", [number], {}, f"n{number}", {}) for number in range(20)]
        calls[1] = calls[1]._replace(options={"priority": 3})
        calls[2] = calls[2]._replace(args=[object()])
        sender = Publisher(fleet.app)
        assert sender.publish_many(calls[:1]) == [None]
        client.set("celery\x06\x163", 1)  # where messages of priority 3 would go
        before = client.info("stats")["total_reads_processed"]
        answers = sender.publish_many(calls)
        sender.close()
        assert client.info("stats")["total_reads_processed"] - before < 10
    assert [type(answer).__name__ for answer in answers[:3]] == ["NoneType", "NotTaken", "EncodeError"]
    assert not answers[1].unavailable
    assert not any(answers[3:])
    sent = [message.headers["id"] for message in project.sent()]
    assert sent == ["n0", "n0", *[f"n{number}" for number in range(3, 20)]]


def test_broker_whose_address_is_misspelt_leaves_jobs_in_their_queue(project, mail, caplog):
    project.connect("redsi://127.0.0.1:1/5")
    mail.put({"task": "a"})
    with working(WorkerProcess(Options(("mail",), threads=1))):
        wait_for(lambda: "No such transport: redsi" in caplog.text)
        wait_for(lambda: mail.peek())
    (job,) = mail.peek()
    assert job.attempts == 0


def test_app_is_the_one_that_was_loaded_or_is_named(project, monkeypatch):
    assert broker.project_app() is fleet.app
    for path, words in {
        "tests.nothing.app": "can't be imported",
        "tests.settings.DEBUG": "is not a Celery app",
    }.items():
        project.options(CELERY_APP=path)
        with pytest.raises(ConfigurationError, match=words):
            broker.project_app()


def test_backend_of_celery_hands_all_its_jobs_over(project, settings):
    settings.TASKS = {"default": {"BACKEND": "redis_kit.queues.celery.CeleryTaskBackend", "QUEUES": []}}
    result = tasks.remember.using(run_after=timedelta(hours=1), priority=50).enqueue(1)
    forgotten = tasks.forget.enqueue()
    assert drain() == 1
    assert [message.args[1] for message in project.sent()] == [forgotten.id]
    assert Queue("default").run_now(result.id)
    assert drain() == 1
    assert project.sent()[1].args[1] == result.id
