"""Lanes beside a model: never more than a limit runs, no job is lost or waits though it may start, lanes keep order."""

from collections import Counter
from itertools import count

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from redis_kit.queues import Queue
from redis_kit.queues.engine import calls, claim, enqueue
from redis_kit.queues.engine.job import member
from redis_kit.queues.features.limits.lanes import SET_LIMIT
from redis_kit.queues.features.unique.keys import chosen

LANES = ("", "group=a", "group=b", "task=t group=a", "task=t group=b", "task=t")
LANES = (*LANES, "group=a task=u", "task=t task=u queue", "queue")
LIMITS = ("group=a", "task=t", "group=*", "task=u", "queue")
WORKERS = ("w", "x")
PUT = ("put", "group=a", 0)
LIMIT_AFTER_HAND_OVER = [PUT, PUT, PUT, ("claim", 2, "w"), ("hand_over", 0), ("limit", "group=a", 2), ("claim", 1, "w")]
NUMBERS = count()
number = st.integers(0, 5)
operations = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(LANES), st.sampled_from((0, 0, 0, 5))),
    st.tuples(st.just("put_unique"), st.sampled_from(LANES), st.sampled_from(("u", "v"))),
    st.tuples(st.just("claim"), st.integers(1, 6), st.sampled_from(WORKERS)),
    st.tuples(st.sampled_from(("ack", "nack", "give_back", "cancel", "delete")), number),
    st.tuples(st.sampled_from(("hand_over", "claim_by_id", "run_now")), number),
    st.tuples(st.sampled_from(("sign_off", "purge", "sweep", "requeue")), number),
    st.tuples(st.just("limit"), st.sampled_from(LIMITS), st.integers(0, 3)),
    st.tuples(st.just("reset"), st.sampled_from(LIMITS)),
)


class Model:
    """What is in a queue, and what its limits allow."""

    def __init__(self):
        self.queue = Queue(f"model{next(NUMBERS)}")
        self.lanes, self.places, self.running, self.dead, self.limits = {}, {}, {}, set(), {}
        self.away = {}  # jobs that another system has, and has not begun
        self.order, self.late = count(), set()  # those that came back may start after others

    def put(self, lane, priority):
        job = enqueue.job("x")
        steps = enqueue.put_one(self.queue, job, turn=calls.Turn(priority=priority, lane=lane))
        self.run(steps)
        self.lanes[job[0]], self.places[job[0]] = lane, (-priority, next(self.order))

    def put_unique(self, lane, key):
        job = enqueue.job("x")
        placed = self.run(enqueue.put_one(self.queue, job, chosen(key, "done", True), calls.Turn(lane=lane)))
        if placed.created or placed.replaced:
            moved = placed.created or self.lanes[placed.id] != lane or self.places[placed.id][0]
            self.lanes[placed.id] = lane
            if self.away.pop(placed.id, None) or moved:
                self.places[placed.id] = (0, next(self.order))
                self.late.discard(placed.id)

    def claim(self, limit, worker="w"):
        before, jobs, more = self.used(), [], True
        while more and len(jobs) < limit:  # an answer says whether another claim may find jobs
            claimed = self.run(claim.claim(self.queue, limit - len(jobs), worker))
            jobs, more = jobs + claimed.jobs, claimed.next == 0
        for job in jobs:
            lane = self.lanes[job.id]
            beside = [id for id in self.waiting() if self.lanes[id] == lane and id not in self.late]
            first = min((self.places[id] for id in beside), default=None)
            assert not lane or job.id in self.late or self.places[job.id] == first, "not in order"
            self.running[job.id] = job
        used = self.used()
        assert all(used[name] <= max(self.allowed(name), before[name]) for name in used), "too many run"
        if len(jobs) < limit:
            assert [id for id in self.waiting() if self.may_start(self.lanes[id])] == [], "waits though it may start"

    def used(self):
        """Return how many jobs count for each limit."""
        return Counter(name for id in [*self.running, *self.away] for name in self.lanes[id].split())

    def allowed(self, name):
        return self.limits.get(name, self.limits.get("group=*", 99) if name.startswith("group=") else 99)

    def may_start(self, lane):
        used = self.used()
        return all(used[name] < self.allowed(name) for name in lane.split())

    def waiting(self):
        return [id for id in self.lanes if id not in self.running and id not in self.dead and id not in self.away]

    def ack(self, at):
        if self.running:
            job = self.take(at)
            self.queue.ack(job)
            del self.lanes[job.id]

    def nack(self, at):
        if self.running:
            job = self.take(at)
            if self.queue.nack(job, max_attempts=2) == "dead":
                self.dead.add(job.id)
            self.late.add(job.id)

    def give_back(self, at):
        if self.running:
            job = self.take(at)
            assert self.run(claim.settle(self.queue, [calls.End(member(job), "return")])) == [1]
            self.late.add(job.id)

    def hand_over(self, at):
        if self.running:
            job = self.take(at)
            assert self.run(claim.postpone(self.queue, [(job, 60.0)], holds=True)) == [True]
            self.away[job.id] = job

    def claim_by_id(self, at):
        if self.away:
            job = self.away.pop(list(self.away)[at % len(self.away)])
            more = {"version": claim.version(job), "token": job.token, "about": "{}"}
            self.running[job.id] = self.run(claim.claim_by_id(self.queue, "w", f"c{next(NUMBERS)}", job.id, **more))

    def run_now(self, at):
        if self.away:
            id = list(self.away)[at % len(self.away)]
            assert self.queue.run_now(id)
            del self.away[id]
            self.late.add(id)

    def sign_off(self, _):
        own = {id for id, job in self.running.items() if job.token.startswith("w/")}
        assert self.queue.sign_off(worker="w") == len(own)
        self.late |= own
        self.running = {id: job for id, job in self.running.items() if id not in own}

    def cancel(self, at):
        if waiting := [*self.waiting(), *self.away]:
            id = waiting[at % len(waiting)]
            assert self.queue.cancel(id)
            self.forget(id)

    def delete(self, at):
        if waiting := [*self.waiting(), *self.away]:
            id = waiting[at % len(waiting)]
            assert self.queue.delete(id)
            self.forget(id)

    def purge(self, at):
        if not at:
            assert self.queue.purge("ready") == len(self.waiting())
            for id in self.waiting():
                del self.lanes[id]

    def sweep(self, _):
        assert self.run(calls.sweep(self.queue.key(""))) == []

    def requeue(self, _):
        assert self.queue.requeue(limit=99) == len(self.dead)
        self.dead.clear()

    def limit(self, name, most):
        self.limits[name] = most
        self.run(SET_LIMIT(self.queue.key(""), name, f"{most} - "))

    def reset(self, name):
        self.limits.pop(name, None)
        self.run(SET_LIMIT(self.queue.key(""), name, "-"))

    def forget(self, id):
        del self.lanes[id]
        self.away.pop(id, None)

    def take(self, at):
        return self.running.pop(list(self.running)[at % len(self.running)])

    def run(self, step):
        def flow():
            return (yield step)

        return self.queue.run_flow(flow() if hasattr(step, "command") else step)

    def check(self):
        assert self.queue.counts() == (len(self.away), len(self.waiting()), len(self.running), len(self.dead))
        states = {id: self.queue.get(id).state for id in self.lanes}
        assert all(states[id] == "ready" for id in self.waiting())


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(operations, max_size=40))
@example(LIMIT_AFTER_HAND_OVER)
@example([PUT, PUT, ("claim", 1, "w"), ("put", "group=a", 5), ("nack", 0)])
def test_lanes_do_what_the_model_does(kit, steps):
    model = Model()
    for name, *values in steps:
        getattr(model, name)(*values)
    model.check()
    # In the end all jobs run, and nothing is left of lanes, except notes for the next claim with any.
    for name in LIMITS:
        model.reset(name)
    while model.lanes:
        model.requeue(0)
        model.run_now(0)
        model.claim(10)
        while model.running:
            model.ack(0)
    model.put("group=c", 0)
    for _ in range(3):  # notes for a claim may be left
        model.run(claim.claim(model.queue, 1, "w", done=()))
        model.sweep(0)
    assert model.queue.sign_off(worker="w") == 1
    assert model.queue.purge("ready") == 1
    left = model.queue.key("")
    assert kit.client.hgetall(f"{left}lanes") == kit.client.hgetall(f"{left}limits") == {}
    members = kit.client.zrange(f"{left}parked", 0, -1)
    assert [member for member in members if not member.startswith(("rule", "todo"))] == []
