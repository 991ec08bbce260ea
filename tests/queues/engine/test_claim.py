"""The flows of a queue, stepped by hand: what is sent, and what an error does. No server."""

import asyncio

import pytest

from redis_kit.core.errors import KeyConflict, RedisUnavailable
from redis_kit.queues import Queue
from redis_kit.queues.engine import calls, claim, enqueue
from redis_kit.queues.engine.done import Ack, ack_of
from redis_kit.queues.engine.feature import has, script_parts
from redis_kit.queues.engine.job import Job

JOB = Job("id", b"1", "worker/claim/0")
QUEUE = Queue("q")
ONE = b"\x01\0\0\0\x02\0\0\0\x0c" + b"0id0 1 0 5000\n1"  # a job of a claim's reply


def sent(step):
    """The script and the arguments of a step."""
    keys = step.command[2]
    return step.script.name.rpartition(".")[2], step.command[3 + keys :]


def finish(flow, reply):
    with pytest.raises(StopIteration) as stop:
        flow.send(reply)
    return stop.value.value


def test_claim_whose_answer_is_lost_is_sent_again_with_the_same_token():
    flow = claim.claim_and_reap(QUEUE, "w", 1)
    _, (_, _, token, *_) = sent(flow.send(None))
    with pytest.raises(RedisUnavailable):
        flow.throw(RedisUnavailable("lost", indeterminate=True))
    again = claim.claim_and_reap(QUEUE, "w", 1)
    assert sent(again.send(None))[1][2] == token
    assert finish(again, b"-1 -1 5 0 \n") == claim.Claimed([], None, [])
    assert sent(claim.claim_and_reap(QUEUE, "w", 1).send(None))[1][2] != token


def test_claim_whose_repeat_did_not_arrive_is_still_to_be_repeated():
    lost = claim.claim_and_reap(QUEUE, "w5", 1)
    _, (_, _, token, *_) = sent(lost.send(None))
    with pytest.raises(RedisUnavailable):
        lost.throw(RedisUnavailable("lost", indeterminate=True))
    for _ in range(2):
        again = claim.claim_and_reap(QUEUE, "w5", 1)
        assert sent(again.send(None))[1][2] == token
        with pytest.raises(RedisUnavailable):
            again.throw(RedisUnavailable("not sent"))


@pytest.mark.parametrize("error", [RedisUnavailable("not sent"), KeyConflict("wrong type")])
def test_claim_that_certainly_did_not_happen_is_not_repeated(error):
    worker = type(error).__name__
    flow = claim.claim_and_reap(QUEUE, worker, 1)
    _, (_, _, token, *_) = sent(flow.send(None))
    with pytest.raises(type(error)):
        flow.throw(error)
    assert sent(claim.claim_and_reap(QUEUE, worker, 1).send(None))[1][2] != token


def test_cancelled_claim_is_repeated():
    flow = claim.claim_and_reap(QUEUE, "w3", 1)
    _, (_, _, token, *_) = sent(flow.send(None))
    flow.close()
    assert sent(claim.claim_and_reap(QUEUE, "w3", 1).send(None))[1][2] == token


def test_lost_claim_is_not_repeated_on_another_connection():
    flow = claim.claim_and_reap(QUEUE, "w6", 1)
    _, (_, _, token, *_) = sent(flow.send(None))
    flow.close()
    assert sent(claim.claim_and_reap(Queue("q", using="other"), "w6", 1).send(None))[1][2] != token
    assert sent(claim.claim_and_reap(QUEUE, "w6", 1).send(None))[1][2] == token


def test_claim_reaps_only_if_a_lease_is_over_and_repeats_only_for_jobs():
    flow = claim.claim_and_reap(QUEUE, "w4", 1)
    flow.send(None)
    assert finish(flow, b"250 8000 5 0 \n").next == 0.25
    flow = claim.claim_and_reap(QUEUE, "w4", 1)
    flow.send(None)
    assert sent(flow.send(b"-1 0 5 0 \n"))[0] == "heartbeat"
    taken = sent(flow.send([-1, 9000, b"", [], [], [], 5000, 4000, 0, [b"dead"]]))
    assert (taken[0], taken[1][:3]) == ("reap", (b"dead", "silent", 100))
    assert sent(flow.send([1, 0, 1]))[0] == "ack_and_claim"
    assert [job.id for job in finish(flow, b"0 9000 5 0 \n" + ONE).jobs] == ["id"]
    flow = claim.claim_and_reap(QUEUE, "w4", 1)
    flow.send(None)
    flow.send(b"-1 0 5 0 2\n")
    assert finish(flow, [-1, 9000, b"", [], [], [], 5000, 4000, 0, []]) == claim.Claimed([], None, [1])


def test_caller_stopped_after_its_claim_gets_the_jobs_with_the_next_one():
    flow = claim.claim_and_reap(QUEUE, "w7", 1)
    _, (_, _, token, *_) = sent(flow.send(None))
    assert sent(flow.send(b"0 0 5 0 \n" + ONE))[0] == "heartbeat"
    with pytest.raises(asyncio.CancelledError):
        flow.throw(asyncio.CancelledError())
    assert sent(claim.claim_and_reap(QUEUE, "w7", 1).send(None))[1][2] == token


def test_queue_is_registered_after_its_first_job_and_may_fail_to_be():
    flow = enqueue.put(Queue("noted"), [("id", b"1")])
    assert sent(flow.send(None))[0] == "put"
    assert sent(flow.send(1))[0] == "register_queue"
    with pytest.raises(StopIteration) as stop:
        flow.throw(RedisUnavailable("away"))
    assert stop.value.value == ["id"]
    flow = enqueue.put(Queue("noted"), [("id", b"1")])
    flow.send(None)
    assert sent(flow.send(1))[0] == "register_queue"
    assert finish(flow, 1) == ["id"]
    flow = enqueue.put(Queue("noted"), [("id", b"1")])
    flow.send(None)
    assert finish(flow, 0) == []


def test_lost_claim_is_an_error_that_names_job_and_queue():
    queue = Queue("mail")
    assert "claim on job 'id' of queue 'mail' is over" in str(claim.lost(queue, [JOB]))
    assert "claims on jobs 'id', 'id', 'id' and 1 more of queue 'mail' are over" in str(claim.lost(queue, [JOB] * 4))


def test_reason_is_cut_and_can_always_be_sent():
    reason = calls.cut("x\ud800" * 800)
    assert len(reason.decode()) <= 1000 * 6
    assert reason.startswith(b"x\\ud800")


def test_ids_that_are_no_text_are_sent_as_they_came():
    from redis_kit.queues.engine.job import claimed

    (job,) = claimed(b"\x01\0\0\0\x03\0\0\0\x0c" + b"0\xff/\x000 1 0 5000\n1", 0, "w/x", 5.0)
    assert sent(calls.settle("rk:{q}:", "w", acks=[ack_of(job)]))[1][5:] == (1, b"w/x/0/\xff/\x00", b"\xff/\x00")


def test_scripts_take_the_keys_that_they_and_their_parts_name():
    pytest.importorskip("redis_kit.queues.features.results.feature")
    plain = ["features", "workers", "signal", "jobs", "running", "answers:w", "minutes"]
    parts = {b"0": ()}
    if has("lanes"):
        parts |= {b"1": ("lanes",), b"65": ("lanes", "turns", "ready", "limits", "parked")}
    parts |= {b"2": ("unique", "owners")} if 2 in script_parts() else {}
    parts |= {b"4": ("cancels",)} if 4 in script_parts() else {}
    for features, more in parts.items():
        command = calls.settle("rk:{q}:", "w", acks=[Ack(0, b"w/c/1", b"x", b"1", 1000)], features=features).command
        keys = command[3 : 3 + command[2]]
        assert keys[-2:] == ("rk:{q}:result:x", "rk:{q}:finished:x")
        assert set(keys[:-2]) == {f"rk:{{q}}:{part}" for part in (*plain, *more)}


def test_call_is_made_again_with_the_parts_for_the_features_in_use(monkeypatch):
    monkeypatch.setattr(claim, "_features", {})
    parts, flow = {"scheduled", "repeats"}, claim.claim_and_reap(QUEUE, "w8", 1)
    step = flow.send(None)
    assert not parts & {key.rpartition(":")[2] for key in step.command[3 : 3 + step.command[2]]}
    again = flow.send(b"FEATURES 40")
    assert sent(again)[1][1:] == sent(step)[1][1:]
    assert parts < {key.rpartition(":")[2] for key in again.command[3 : 3 + again.command[2]]}
    assert finish(flow, b"-1 -1 5 0 \n") == claim.Claimed([], None, [])
    assert sent(claim.acknowledge(QUEUE, "w8", [ack_of(JOB)]).send(None))[1][0] == b"40"


def test_key_of_features_that_holds_anything_else_ends_no_call_in_a_loop(kit, monkeypatch):
    queue = Queue("default")
    for text in ("x", "-1", "1e300", "999", "7\n"):
        kit.client.set(queue.key("features"), text)
        queue.put(1)
        queue.ack(*queue.claim(worker="w"))
        assert queue.counts() == (0, 0, 0, 0)
