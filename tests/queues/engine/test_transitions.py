"""Each change of a job's state beside each feature: where the job is then, and that nothing else is left in Redis."""

from itertools import product

import pytest

from redis_kit.queues import Queue, task
from redis_kit.queues.engine import calls, claim, liveness
from redis_kit.queues.engine.feature import features
from redis_kit.queues.engine.job import member

NAMES = {"unique": "unique", "limits": "limit", "cancel": "mark", "results": "result"}
HAS_UNKNOWN = "unknown" in [feature.name for feature in features()]
FEATURES = ("plain", *(NAMES[feature.name] for feature in features() if feature.name in NAMES))
WAITING = ("ready", "scheduled")
# What is done to a job in a state, and its state then; None: it is gone.
CHANGES = {
    **{(state, act): None for state in (*WAITING, "dead") for act in ("delete", "purge")},
    **{(state, "cancel"): None for state in WAITING},
    ("running", "cancel"): "running",
    ("dead", "cancel"): "dead",
    ("running", "delete"): "running",
    ("ready", "claim"): "running",
    ("scheduled", "run_now"): "ready",
    ("scheduled", "come due"): "running",
    ("dead", "requeue"): "ready",
    ("dead", "month"): None,
    ("running", "ack"): None,
    ("running", "retry"): "ready",
    ("running", "retry later"): "scheduled",
    ("running", "fail"): "dead",
    ("running", "snooze"): "scheduled",
    **({("running", "unfit"): "scheduled"} if HAS_UNKNOWN else {}),
    ("running", "later"): "scheduled",
    ("running", "away"): "scheduled",
    ("running", "return"): "ready",
    ("running", "sign off"): "ready",
    ("running", "crash"): "ready",
    ("running", "silence"): "ready",
    ("running", "poison"): "dead",
    ("running", "sweep"): "ready",
    ("running", "take over"): "running",
}
# With a mark these end the job. The first ones change nothing: the worker is told to record it as cancelled.
REFUSED = ("retry", "retry later", "snooze", *(["unfit"] if HAS_UNKNOWN else []))
ENDING = ("later", "away", "return", "sign off", "crash", "silence", "poison", "sweep")
RECORDED = ("retry", "retry later", "snooze", "fail")  # in the result of the job
OF_QUEUE = {
    "features",
    "sequence",
    "signal",
    "minutes",
    "workers",
    "info",
    "answers:w",
    "limits",
    "turns",
    "lost",
    "crashed",
}
OF_QUEUE |= {"unknown", "deferred:d"}


def work():
    pass


class Scene:
    """A job of a queue, and what may be done to it."""

    def __init__(self, kit, feature):
        self.kit, self.queue, self.feature, self.job = kit, Queue("default"), feature, None

    def put(self, state):
        queue, options = self.queue, {}
        if self.feature == "unique":
            options["unique"] = "u"
        if self.feature == "limit":
            options["group"] = "g"
        delay = {"delay": 60} if state == "scheduled" else {}
        if self.feature == "result":
            self.id = task(work).using(**delay and {"run_after": later()}).enqueue().id
        else:
            self.id = "j"
            queue.put(1, id="j", **options, **delay)
        if state in ("running", "dead"):
            (self.job,) = queue.claim(worker="w")
        if state == "dead":
            queue.nack(self.job, max_attempts=1)
        if self.feature == "mark" and state == "running":
            queue.cancel("j")

    def do(self, act):
        queue, id, base, keys = self.queue, self.id, self.queue.key(""), self.kit.client
        if act == "purge":
            queue.purge(queue.get(id).state)
        elif act in ("delete", "cancel", "run_now"):
            getattr(queue, act)(id)
        elif act == "claim":
            assert [job.id for job in queue.claim(worker="w")] == [id]
        elif act == "come due":
            keys.zadd(queue.key("scheduled"), {id: 1})
            assert [job.id for job in queue.claim(worker="w")] == [id]
        elif act == "requeue":
            assert queue.requeue([id]) == 1
        elif act == "month":
            keys.zadd(queue.key("dead"), {id: 1})
            self.run(calls.sweep(base))
        elif act == "ack":
            queue.ack(self.job)
        elif act in ("retry", "retry later", "fail"):
            most = 1 if act == "fail" else 9
            queue.run_flow(claim.fail(queue, self.job, 60 if act == "retry later" else 0, "e", most, (b"[]", 60_000)))
        elif act == "snooze":
            queue.run_flow(claim.snooze(queue, self.job, 60, expires=0, why="", ttl_ms=60_000))
        elif act == "unfit":
            end = calls.End(member(self.job), "unfit", 60_000, 9, 0, "shape", "d")
            queue.run_flow(claim.settle(queue, [end], part="unfit", name="d"))
        elif act in ("later", "away"):
            queue.run_flow(claim.postpone(queue, [(self.job, 60.0)], holds=act == "away"))
        elif act == "return":
            queue.run_flow(claim.settle(queue, [calls.End(member(self.job), "return")]))
        elif act == "sign off":
            queue.run_flow(liveness.sign_off(queue, "w"))
        elif act in ("crash", "poison"):
            if act == "poison":
                keys.hset(queue.key("crashed"), id, "9")
                record = keys.hget(queue.key("jobs"), id).split(" ", 3)
                keys.hset(queue.key("jobs"), id, " ".join((*record[:2], "3", record[3])))
            self.run(calls.reap(base, "w", [id]))
        elif act == "silence":
            keys.zadd(queue.key("workers"), {"w": 1.5})
            queue.heartbeat(worker="v")
        elif act == "sweep":
            keys.zrem(queue.key("workers"), "w")
            self.run(calls.sweep(base))
        elif act == "take over":
            parts = {"version": claim.version(self.job), "token": self.job.token, "about": "{}"}
            assert queue.run_flow(claim.claim_by_id(queue, "w", "c2", id, **parts))
        queue.run_flow(liveness.after_endings(queue, 1))

    def run(self, step):
        def flow():
            return (yield step)

        return self.queue.run_flow(flow())

    def places(self):
        """Return the keys that hold something of the job, and those that are left beside these of any queue."""
        keys, found = self.kit.raw, set()
        for key in self.kit.keys():
            part = key.partition(self.queue.key(""))[2]
            kind = keys.type(key).decode()
            read = {"hash": keys.hgetall, "zset": lambda key: keys.zrange(key, 0, -1), "list": lambda key: []}
            held = read.get(kind, lambda key: [])(key)
            texts = [*held, *held.values()] if isinstance(held, dict) else held
            words = {word for text in texts for word in text.replace(b"\n", b"/").replace(b" ", b"/").split(b"/")}
            names_job = self.id.encode() in words or part.endswith(f":{self.id}")
            if part and (names_job if part in OF_QUEUE else part):
                found.add(part.replace(self.id, "ID") if part.endswith(f":{self.id}") else part)
        return found


def later():
    from datetime import timedelta

    from django.utils.timezone import now

    return now() + timedelta(seconds=60)


def expected(feature, before, act, state):
    """Return the keys that may hold something of a job in this state."""
    if feature == "mark" and before == "running" and act in ENDING:
        state = None
    elif feature == "mark" and before == "running" and act in REFUSED:
        state = "running"
    parts = {"jobs", state} if state else set()
    parts |= {"reasons"} if state == "dead" else set()
    if feature == "unique" and state:
        parts |= {"unique", "owners"}
    if feature == "limit" and state:
        parts |= {"lanes"}
    if state == "running" and (act == "cancel" or (feature == "mark" and before == "running")):
        parts |= {"cancels"}
    if act == "unfit" and state == "scheduled":
        parts |= {"deferred:d"}
    if act in ("crash", "silence", "poison") and state:
        parts |= {"crashed"}
    return parts


def allowed(feature, before, act, state):
    """Return the keys that may be there beside those: of limits and of results."""
    parts = {"parked", "limits"} if feature == "limit" else set()
    parts |= {"crashed"} if act == "poison" else set()
    return parts | ({"result:ID"} if feature == "result" or act in RECORDED else set())


@pytest.mark.parametrize(
    ("before", "act"), [change for change in CHANGES if "mark" in FEATURES or "cancel" not in change]
)
def test_change_of_state_leaves_only_what_the_new_one_has(kit, before, act):
    for feature in FEATURES:
        kit.raw.flushdb()
        scene = Scene(kit, feature)
        scene.put(before)
        scene.do(act)
        needed = expected(feature, before, act, CHANGES[before, act])
        found = scene.places()
        assert needed <= found, feature
        assert found <= needed | allowed(feature, before, act, CHANGES[before, act]), feature
        info = scene.queue.get(scene.id)
        states = needed & {"ready", "scheduled", "running", "dead"}
        assert {info.state} if info else set() == states, feature
        assert sum(scene.queue.counts()) == len(states), feature


def test_table_has_all_that_ends_or_returns_a_running_job():
    pairs = set(product(("running",), (*REFUSED, *ENDING)))
    assert pairs <= set(CHANGES)
