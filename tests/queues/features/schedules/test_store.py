"""Schedules in Redis: which release of the code wins, who claims a tick, and how often its job is added."""

import contextlib
import re

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import KeyConflict
from redis_kit.queues import Queue
from redis_kit.queues.engine.claim import snooze
from redis_kit.queues.engine.feature import has
from redis_kit.queues.engine.unique import UniqueKey, digest
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.store import Confirmation, Schedules, State
from tests.fixtures.process import wait_for

RAN = State(outcome="added")
OLD = 10**6  # ms: what was seen as long before now counts as gone
LANES = [""]
if has("lanes"):
    LANES += ["group=g\ngroup=*\n-", "group=g task=t\ngroup=*\n-\ntask=t\n1 -"]


@pytest.fixture
def schedules(kit):
    return Schedules("all")


def run(schedules, flow):
    return schedules.run_flow(flow)


def declare(schedules, version, **definitions):
    return run(schedules, store.declare(version, definitions))


def claim(schedules, supervisor="s", version="", *skipped):
    return run(schedules, store.claim(supervisor, version, skipped))


def confirm(schedules, claimed, *rows):
    return run(schedules, store.confirm(claimed.claim, rows))


def names(claimed):
    return [schedule.name for schedule in claimed.schedules]


def age(kit, schedules, version, ms=OLD):
    """Let a release of the code have been there, and been seen last, a while ago."""
    seen = kit.client.hget(schedules.key("versions"), version).split()
    kit.client.hset(schedules.key("versions"), version, " ".join(str(int(each) - ms) for each in seen))


def test_schedule_goes_from_its_declaration_to_a_job_on_each_server(any_kit):
    schedules = Schedules("all")
    declare(schedules, "v1", a="{}")
    run(schedules, store.store([("b", "{}")]))
    claimed = claim(schedules, "one", "v1")
    assert names(claimed) == ["a", "b"]
    (answer,) = run(schedules, store.put([step(5)]))
    assert answer == ("added", "j5")
    assert confirm(schedules, claimed, Confirmation("a", claimed.now + 60_000, RAN), Confirmation("b", 10**15)) == 2
    assert [each.state for each in run(schedules, store.page("due", 0, 9)).schedules] == [RAN, State()]


def test_declared_schedules_are_claimed_once_and_come_back_after_the_lease(schedules, kit):
    assert declare(schedules, "v1", a='{"every":1}', b='{"every":2}') == 2
    first = claim(schedules, "one", "v1")
    assert (names(first), first.watches, first.total, set(first.versions)) == (["a", "b"], True, 2, {"v1"})
    (one, _) = first.schedules
    assert (one.code, one.look) == ('{"every":1}', 0)
    second = claim(schedules, "two")
    assert (names(second), second.watches) == ([], True)
    assert 0 < second.next <= store.LEASE
    assert not claim(schedules, "three").watches
    kit.client.zadd(schedules.key("due"), {"a": 5})
    assert names(claim(schedules, "two")) == ["a"]


def test_confirmed_schedule_has_its_next_time_and_state(schedules):
    declare(schedules, "v1", a="{}", b="{}")
    claimed = claim(schedules)
    later = claimed.now + 60_000
    rows = Confirmation("a", later, RAN), Confirmation("b", later + 1)
    assert confirm(schedules, claimed, *rows) == 2
    found = run(schedules, store.page("names", 0, 10))
    looks = [(each.name, each.look, each.state) for each in found.schedules]
    assert looks == [("a", later, RAN), ("b", later + 1, State())]
    assert found.total == 2
    assert 0 < claim(schedules).next <= 60_000
    assert run(schedules, store.find("a")).state == RAN


def test_claim_that_is_over_confirms_nothing(schedules, kit):
    declare(schedules, "v1", a="{}", b="{}")
    claimed = claim(schedules)
    declare(schedules, "v2", a='{"changed":1}')
    kit.client.zadd(schedules.key("due"), {"b": 5})
    assert confirm(schedules, claimed, Confirmation("a", 10**15, RAN), Confirmation("b", 10**15, RAN)) == 0
    assert names(claim(schedules)) == ["a", "b"]


def test_schedules_that_one_supervisor_can_not_run_are_left_to_others(schedules):
    declare(schedules, "v1", a="{}", b="{}")
    confirm(schedules, claim(schedules), Confirmation("a", 1), Confirmation("b", 1))
    assert names(claim(schedules, "one", "v1", "a", "nope")) == ["b"]
    assert names(claim(schedules, "two")) == ["a"]


def test_changed_schedule_is_left_to_nobody(schedules):
    declare(schedules, "v1", a="{}")
    confirm(schedules, claim(schedules), Confirmation("a", 1))
    run(schedules, store.store([("a", '{"every":1}')]))
    assert names(claim(schedules, "one", "v1", "a")) == ["a"]


def test_release_that_was_deployed_later_wins_while_it_lives(schedules, kit):
    declare(schedules, "old", a="1", gone="1")
    age(kit, schedules, "old", 5000)
    assert declare(schedules, "new", a="2", more="2") == 2
    assert declare(schedules, "old", a="1", gone="1") == 0
    found = {each.name: each for each in run(schedules, store.page("names", 0, 9)).schedules}
    assert {name: each.code for name, each in found.items()} == {"a": "2", "gone": "1", "more": "2"}
    age(kit, schedules, "new")
    assert declare(schedules, "old", a="1", gone="1") == 1


def test_release_that_is_deployed_again_counts_as_new(schedules, kit):
    declare(schedules, "old", a="1")
    age(kit, schedules, "old")
    declare(schedules, "new", a="2")
    declare(schedules, "old", a="1")
    assert run(schedules, store.find("a")).code == "1"


def test_schedule_that_no_worker_had_for_an_hour_is_forgotten(schedules, kit):
    declare(schedules, "v1", a="1", b="1", c="1")
    run(schedules, store.store([("c", "row")]))
    age(kit, schedules, "v1", store.UNDECLARED - 60_000)
    claimed = claim(schedules)
    confirm(schedules, claimed, *(Confirmation(name, 1, RAN) for name in names(claimed)))
    age(kit, schedules, "v1", 120_000)
    assert names(claim(schedules, "s", "v2")) == []  # it may declare them
    declare(schedules, "v2", b="1")
    left = claim(schedules, "s", "v2").schedules
    assert [(each.name, each.code, each.row, each.state) for each in left] == [
        ("b", "1", "", RAN),
        ("c", "1", "row", RAN),
    ]
    assert [each.name for each in run(schedules, store.page("names", 0, 9)).schedules] == ["b", "c"]


def test_worker_that_was_away_for_hours_declares_its_schedules_again(schedules, kit):
    declare(schedules, "v1", a="1")
    age(kit, schedules, "v1", store.UNDECLARED + 60_000)
    assert names(claim(schedules)) == []
    assert claim(schedules, "s", "v1").versions == {}
    declare(schedules, "v1", a="1")
    assert names(claim(schedules, "s", "v1")) == ["a"]


def test_claim_that_forgets_many_says_that_more_may_be_due(schedules):
    gone = [f"gone {number}" for number in range(store.CLAIMED + 1)]
    run(schedules, store.store([(name, "1") for name in gone]))
    run(schedules, store.store([(name, "") for name in gone]))
    run(schedules, store.store([("last", "1")]))
    first, second = claim(schedules), claim(schedules)
    assert (names(first), first.next) == ([], 0)
    assert names(second) == ["last"]
    assert second.next > 0


def stored_names(schedules):
    return run(schedules, store.stored())[1]


def test_saved_rows_are_stored_and_deleted_ones_removed(schedules):
    assert run(schedules, store.store([("a", "1"), ("b", "1")])) == 2
    assert run(schedules, store.store([("a", "2"), ("b", "1")])) == 1
    claimed = claim(schedules)
    assert [each.row for each in claimed.schedules] == ["2", "1"]
    assert store.STORED not in claimed.versions
    assert run(schedules, store.store([("a", ""), ("nope", "")])) == 1
    assert stored_names(schedules) == ["b"]


def test_rows_that_were_read_before_one_was_saved_do_not_replace_it(schedules, kit):
    run(schedules, store.store([("a", "1"), ("gone", "1")]))
    read, names = run(schedules, store.stored())
    assert sorted(names) == ["a", "gone"]
    wait_for(lambda: run(schedules, store.stored())[0] > read)
    run(schedules, store.store([("a", "saved since"), ("new", "1")]))
    assert run(schedules, store.store([("a", "1"), ("new", ""), ("gone", "")], read=read)) == 1
    claimed = claim(schedules)
    assert {each.name: each.row for each in claimed.schedules} == {"a": "saved since", "new": "1"}
    assert claimed.versions[store.STORED] >= read


def test_more_schedules_than_one_call_takes(schedules):
    declared = {f"s{number:03}": "{}" for number in range(450)}
    assert declare(schedules, "v1", **declared) == 450
    taken = [names(claim(schedules)) for _ in range(6)]
    assert [len(each) for each in taken] == [100, 100, 100, 100, 50, 0]
    assert len({name for each in taken for name in each}) == 450
    assert run(schedules, store.page("names", 440, 100)).schedules[-1].name == "s449"


def step(number, *, id=None, overlap="skip", key=None, lane=""):
    unique, until, _ = key or ("", "", False)
    job = (0, id or f"j{number}", b"1", unique, until, lane)
    return store.PUT_TICK(Queue("mail").key(""), "s", number, overlap, *job, job=unique or "-")


def tick(number, **options):
    return step(number, **options).run(connections.client())


def test_job_of_a_tick_is_added_once(kit):
    assert tick(5) == [b"added", b"j5"]
    assert tick(5) == [b"repeated", b"j5"]
    assert tick(4, overlap="allow") == [b"repeated", b"j5"]
    queue = Queue("mail")
    queue.ack(*queue.claim())
    assert tick(5) == [b"repeated", b"j5"]
    assert tick(6) == [b"added", b"j6"]
    assert queue.counts()[:3] == (0, 1, 0)


def test_earlier_job_is_in_the_way_as_the_policy_says(kit):
    queue = Queue("mail")
    assert tick(1)[0] == b"added"
    assert [tick(2), tick(2, overlap="queue_one")] == [[b"skipped", b"j1"]] * 2
    (job,) = queue.claim()
    assert [tick(3), tick(3, overlap="queue_one")] == [[b"skipped", b"j1"], [b"waits", b"j1"]]
    assert tick(3, overlap="allow") == [b"added", b"j3"]
    queue.nack(queue.claim()[0], max_attempts=1)
    assert tick(4)[0] == b"added"
    queue.ack(job)


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
@pytest.mark.parametrize("lane", LANES)
def test_job_that_waits_for_its_retry_begins_it_at_the_next_tick(kit, overlap, lane):
    queue = Queue("mail")
    assert tick(1, lane=lane)[0] == b"added"
    (job,) = queue.claim()
    queue.nack(job, delay=600)
    assert tick(2, overlap="allow", lane=lane) == [b"added", b"j2"]
    queue.ack(*queue.claim())
    assert tick(3, lane=lane) == [b"added", b"j3"]  # j2, the latest job, is done
    queue.nack(*queue.claim(), delay=600)
    for number in (4, 5):
        assert tick(number, overlap=overlap, lane=lane) == [b"retried", b"j3"]
        assert tick(number, overlap=overlap, lane=lane) == [b"repeated", b"j3"]
        assert tick(number + 10, overlap=overlap, lane=lane) == [b"skipped", b"j3"]
        (again,) = queue.claim()
        assert (again.id, again.attempt) == ("j3", number - 2)
        assert tick(number + 10, lane=lane) == [b"skipped", b"j3"]
        queue.nack(again, delay=600)
    assert tick(0, id="hand", lane=lane) == [b"retried", b"j3"]
    queue.nack(*queue.claim(), max_attempts=1)
    assert tick(6, overlap=overlap, lane=lane) == [b"added", b"j6"]


def test_job_that_snoozes_is_in_the_way(kit):
    queue = Queue("mail")
    assert tick(1)[0] == b"added"
    (job,) = queue.claim()
    run(queue, snooze(queue, job, 600, expires=0, why="", ttl_ms=0))
    assert tick(2) == [b"skipped", b"j1"]


def test_run_by_hand_is_no_tick_and_still_in_the_way(kit):
    assert tick(5)[0] == b"added"
    queue = Queue("mail")
    queue.ack(*queue.claim())
    assert tick(0, id="hand") == [b"added", b"hand"]
    assert tick(0, id="again") == [b"skipped", b"hand"]
    assert tick(5) == [b"repeated", b"hand"]
    assert tick(6) == [b"skipped", b"hand"]


def test_unique_task_has_one_job_whoever_added_it(kit):
    pytest.importorskip("redis_kit.queues.features.unique")
    queue = Queue("mail")
    id = queue.put(1, unique="k").encode()
    key = UniqueKey(digest("key", "k"), "done")
    assert tick(1, key=key) == [b"skipped", id]
    assert tick(1, key=key) == [b"skipped", id]
    queue.ack(*queue.claim())
    assert tick(2, key=key) == [b"added", b"j2"]
    assert queue.put(2, unique="k") == "j2"
    assert tick(3, key=UniqueKey("p", "60000"), overlap="allow") == [b"added", b"j3"]
    assert tick(4, key=UniqueKey("p", "60000"), overlap="allow") == [b"skipped", b"j3"]


@pytest.mark.parametrize("part", ["due", "names", "code", "stored", "state", "versions", "watchers"])
def test_key_of_a_wrong_type_is_named_and_nothing_changes(kit, part):
    schedules = Schedules("all")
    (
        kit.client.hset(schedules.key(part), "x", "1")
        if part in ("due", "names", "watchers")
        else kit.client.rpush(schedules.key(part), 1)
    )
    before = kit.keys()
    steps = {
        "declare": lambda: declare(schedules, "v1", a="1"),
        "store": lambda: run(schedules, store.store([("a", "1")])),
        "claim": lambda: claim(schedules),
        "confirm": lambda: run(schedules, store.confirm(b"1", [Confirmation("a", 1, RAN)])),
    }
    errors = []
    for step in steps.values():
        with contextlib.suppress(KeyConflict):
            step()
            continue
        errors.append(step)
    assert errors
    with pytest.raises(KeyConflict, match=re.escape(repr(schedules.key(part)))):
        errors[0]()
    assert set(before) <= set(kit.keys())


def test_release_with_many_schedules_declares_them_in_one_call(schedules, kit):
    declared = {f"s{number:04}": '{"every":1}' for number in range(250)}
    run(schedules, store.declare("v1", declared))
    for name in declared:
        kit.client.hset(schedules.key("state"), name, '{"last":5}')
        kit.client.zadd(schedules.key("due"), {name: 1})
    age(kit, schedules, "v1", 3_700_000)
    steps = store.declare("v2", declared)
    reply = steps.send(None).run(connections.client("default"))
    for _ in range(9):
        claim(schedules, "another", "v2")  # forgets what no living release has
    with pytest.raises(StopIteration):
        steps.send(reply)
    assert kit.client.hlen(schedules.key("state")) == 250
