"""Messages that no caller of the kit ever sent: each is dead with its reason, and the worker goes on."""

import contextlib
import gzip
import json
import pickle
import random
from collections import Counter

import pytest
import redis

from redis_kit.queues import Queue
from tests.fixtures.process import wait_for
from tests.queues.support import fuzz
from tests.queues.support.tasks import note

pytestmark = pytest.mark.once

HEAD = b"0 0 0 5\n"
CALL = {"task": "tests.queues.support.tasks.note", "args": ["never"]}
GOOD = json.dumps(CALL).encode()
CELERY = [[["never"], {}, {"callbacks": None}], {"id": "1", "task": "tests.queues.support.tasks.note"}]

CORRUPT = {
    "empty": b"",
    "text": b"hello",
    "torn": GOOD[:-1],
    "ff": b"\xff" * 10,
    "utf16": GOOD.decode().encode("utf-16"),
    "gzip": gzip.compress(GOOD),
    "bom": b"\xef\xbb\xbf" + GOOD,
    "two": GOOD + GOOD,
    "list": b"[1]",
    "number": b"5",
    "null": b"null",
    "nothing": b"{}",
    "task_number": b'{"task":5}',
    "task_missing": b'{"args":[]}',
    "args_object": b'{"task":"x","args":{}}',
    "kwargs_list": b'{"task":"x","kwargs":[]}',
    "newer": json.dumps({**CALL, "v": 99}).encode(),
    "version_text": json.dumps({**CALL, "v": "1"}).encode(),
    "pickle": pickle.dumps(CALL),
    "celery": json.dumps(CELERY).encode(),
    "celery_whole": json.dumps({"body": "W10=", "headers": {"task": CALL["task"]}, "content-type": "x"}).encode(),
    "rq": b"\x80\x04(X\x1f\x00\x00\x00tests.queues.support.tasks.noteN)",
    "deep": b"[" * 100_000,
    "deep_call": b'{"task":"x","args":[' + b"[" * 50_000 + b"]" * 50_000 + b"]}",
    "digits": b'{"task":"x","args":[' + b"9" * 5000 + b"]}",
    "double": b'{"task":"x","task":"tests.queues.support.tasks.note"}',
    "nan": b'{"task":"x","args":[NaN]}',
    "surrogate_bytes": b'{"task":"\xed\xa0\x80"}',
    "snan": b'{"task":"x","args":[{"$decimal":"sNaN"}]}',
    "snan_version": b'{"v":{"$decimal":"sNaN"},"task":"x"}',
    "type": b'{"task":"x","args":[{"$type":"os.system"}]}',
    "long": b'{"task":"x","args":["' + b"x" * 300_000 + b'"]}',
}
UNKNOWN = {
    "os": b'{"task":"os.system","args":["false"]}',
    "dotted": b'{"task":"tests.queues.support.tasks.os.system"}',
    "no_task": b'{"task":"tests.queues.support.tasks.journal","args":["never","end"]}',
    "empty_name": b'{"task":""}',
    "surrogate": b'{"task":"\\ud800"}',
    "long_name": json.dumps({"task": "x" * 100_000}).encode(),
}
# Nothing that counts as a head: so it is all body.
HEADLESS = [
    *(b"x y z 5\n", b"0 0 0\n", b"0.5 0 0 5\n", b"1e2 0 0 5\n", b"- 0 0 5\n"),
    *(b"0 0 99999999999999999999 5\n", b"0 0 0 99999999999999999999999\n"),
]
# Numbers that are cut to size, or stories that make no sense: the job itself is good.
DONE = [
    b"999 0 0 5\n",
    b"-999999 0 0 5\n",
    b"0 99999999999999999999 0 5\n",
    b"\n",
    b"0 0 0 5\n~\n",
    b"0 0 0 5\n~x/y/z\n",
    b"0 0 0 5\n~9999999999999999//default\n",
    b"0 0 0 5\n~5//default 9999999999999999/w\n",
    b"0 0 0 5\n~5/9999999999999999/default\n",
    b"0 0 0 5\n~5//%ff%00\n",
    b"0 0 0 5\n~5//default 5/a\x1cb\n",
    b"0 0 0 5\n~5//no-such-backend\n",
]
PLACES = {"inf": "inf", "-inf": "-inf", "much": "1e300", "half": "0.5"}
DUE = {"never": "inf", "always": "-inf", "year 9999": 253402300799000}


@pytest.fixture
def queue(kit):
    kit.options(QUEUES={"MAX_ATTEMPTS": 1, "UNKNOWN_TASK_TTL": 0})
    return Queue("default")


@pytest.fixture
def raw(kit):
    """A client that leaves bytes as they are."""
    with contextlib.closing(redis.Redis.from_url(kit.url)) as client:
        yield client


def write(raw, queue, id, record, *, place=0):
    raw.hset(queue.key("jobs"), id, record)
    raw.zadd(queue.key("ready"), {id: place})


def calling(name, **more):
    return json.dumps({**CALL, "args": [name], **more}).encode()


def test_bad_messages_are_dead_with_their_reasons_and_the_others_are_done(queue, raw, journal, start_worker):
    for id, body in {**CORRUPT, **UNKNOWN}.items():
        write(raw, queue, id, HEAD + body)
    for number, head in enumerate(HEADLESS):
        write(raw, queue, f"headless{number}", head + GOOD)
    for number, head in enumerate(DONE):
        write(raw, queue, f"done{number}", head + calling(f"done{number}"))
    write(raw, queue, "more", HEAD + calling("more", unknown=1, v=1))
    for id, place in PLACES.items():
        write(raw, queue, id, HEAD + calling(id), place=place)
    for id, due in DUE.items():
        raw.hset(queue.key("jobs"), id, HEAD + calling(id.replace(" ", "")))
        raw.zadd(queue.key("scheduled"), {id: due})
    for id in (b"", b"\xff\x00", b"a/b/c", b"x" * 5000, b"\r\nFLUSHALL\r\n", b"{other}:jobs"):
        write(raw, queue, id, HEAD + calling("odd"))
    raw.zadd(queue.key("ready"), {"ghost": 0})
    worker = start_worker("--threads", 2)
    note.using(priority=-100).enqueue("last")
    good = [*(f"done{number}" for number in range(len(DONE))), "more", *PLACES, "always", "last", *["odd"] * 6]
    wait_for(lambda: not Counter(good) - Counter(journal.names()), timeout=20)  # a busy machine may run one again
    wait_for(lambda: (counts := queue.counts()).ready == counts.running == 0)
    reasons = {job.id: job.reason for job in queue.peek(1000, state="dead")}
    corrupt = {*CORRUPT, *(f"headless{number}" for number in range(len(HEADLESS)))}
    # One that the worker returned before it began it has numbers that were cut to size, and is good.
    corrupt -= {f"headless{number}" for number in (5, 6) if queue.get(f"headless{number}") is None}
    assert reasons.keys() == {*corrupt, *UNKNOWN}
    assert {id for id, reason in reasons.items() if reason.startswith("corrupt: ")} == corrupt
    assert {id for id, reason in reasons.items() if "unknown task" in reason} == set(UNKNOWN)
    assert "newer release" in reasons["newer"]
    assert all(len(reason) <= 1000 for reason in reasons.values())
    assert queue.counts().scheduled == 2
    assert worker.poll() is None
    note.enqueue("after")
    wait_for(lambda: "after" in journal.names())


def test_random_bytes_in_place_of_jobs_are_drained_and_counted(kit, queue, raw, journal, start_worker):
    kit.options(QUEUES=fuzz.QUEUE)
    seed = random.randrange(10**6)
    filled = fuzz.fill(raw, queue, 1500, random.Random(seed))
    worker = start_worker("--queue-name", "default", "--threads", 4)
    wait_for(lambda: fuzz.drained(queue), timeout=60)
    done, failed = fuzz.ended(queue)
    print(f"{filled}: {done} done, {failed} failed, seed {seed}")
    assert done + failed == filled.jobs
    assert queue.counts().dead == min(failed, fuzz.QUEUE["DEAD_LIMIT"])
    assert worker.poll() is None
    note.enqueue("after")
    wait_for(lambda: "after" in journal.names())


def test_job_whose_id_is_no_text_runs_alone_after_a_crash(kit, queue, raw, start_worker):
    kit.options(QUEUES=fuzz.QUEUE)
    raw.hset(queue.key("jobs"), b"\xe1\x1a/", b"0 0 1 5\n" + fuzz.GOOD)
    raw.zadd(queue.key("ready"), {b"\xe1\x1a/": 1})
    start_worker("--queue-name", "default", "--threads", 1)
    wait_for(lambda: fuzz.drained(queue))
    assert fuzz.ended(queue) == (1, 0)
