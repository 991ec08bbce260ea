"""The dashboard's page about locks: what it shows, and what its buttons do."""

from datetime import UTC, datetime, timedelta
from functools import partial
from time import sleep

import pytest

from redis_kit.core import connections, flow
from redis_kit.core.errors import InvalidName, InvalidValue
from redis_kit.core.panels import RANGES, Figure, Lines, Meter, Pages, Ranges, Table, Viewer
from redis_kit.locks import FairLock, Lock, LockLost, Semaphore
from redis_kit.locks.dashboard import panel
from redis_kit.locks.dashboard.panel import LocksPanel, Target
from redis_kit.locks.inspection import LockWaits, bucket_of
from redis_kit.locks.keys import HeldName
from redis_kit.locks.kinds.read_write_lock import ReadWriteLock
from tests.fixtures.servers import wait_for


def shown(**asked):
    """Return the figures by label, and the tables by title, for a search."""
    content = list(asking(**asked).content())
    figures = {str(one.label): one.value for one in content if isinstance(one, Figure)}
    return figures, {str(one.title): one for one in content if isinstance(one, Table)}


def asking(**asked):
    panel = LocksPanel()
    panel.viewer = Viewer(asked=asked)
    return panel


def test_nothing_is_said_to_be_held_and_waited_for(kit):
    figures, tables = shown()
    assert {label: str(value) for label, value in figures.items()} == {
        "Held": "0",
        "Waiting now": "0",
        "Waited": "0:00:00",
    }
    assert {title: (list(table.rows), str(table.empty)) for title, table in tables.items()} == {
        "Locks": ([], "No lock is held."),
        "Semaphores": ([], "No slot of a semaphore is in use."),
        "Waits that ended": ([], "No caller has waited in this time, and no lease was lost."),
        "Longest waits": ([], "Nobody has waited."),
    }


def test_lock_has_a_row_with_its_holder_and_what_is_left(kit):
    with Lock("invoice:42", timeout=10) as lease:
        figures, tables = shown()
    assert figures["Held"] == 1
    (table,) = [tables["Locks"]]
    ((name, holder, held_for, left, waiting, fence),) = table.rows
    assert name == Lines(("invoice:42", "lock"))
    assert holder.lines[0].endswith("MainThread")
    assert holder.lines[1].startswith("tests/locks/dashboard/test_panel.py:")
    assert 0 <= held_for.total_seconds() < 5
    assert isinstance(left, Meter)
    assert 5 < left.number <= left.most == 10
    assert left.shown.total_seconds() == pytest.approx(left.number)
    assert (waiting, fence) == (0, str(lease.fence))
    assert table.actions == ("release",)
    assert Target.parse(table.values[0]) == Target("lock", "invoice:42", lease.fence)


def test_semaphore_has_a_row_and_each_slot_another(kit):
    with Semaphore("supplier", 3, timeout=20) as first, Semaphore("supplier", 3, weight=2) as second:
        figures, tables = shown()
    assert figures["Held"] == 1
    ((name, used, waiting, ends_in, limit_set_by),) = tables["Semaphores"].rows
    assert (name, used, waiting, str(limit_set_by)) == (Lines(("supplier",)), Meter(3, 3), 0, "code")
    assert 25 < ends_in.total_seconds() <= 30
    assert Target.parse(tables["Semaphores"].values[0]) == Target("semaphore", "supplier")
    (slots,) = [table for title, table in tables.items() if title.startswith("Slots")]
    assert [(row[0], row[-2], row[-1]) for row in slots.rows] == [
        (Lines(("supplier",)), 1, str(first.fence)),
        (Lines(("supplier",)), 2, str(second.fence)),
    ]
    assert [Target.parse(value).fence for value in slots.values] == [first.fence, second.fence]


def test_semaphore_within_another_says_so(kit):
    inner = Semaphore("tenant", 2, within=Semaphore("all", 9))
    with inner:
        table = shown()[1]["Semaphores"]
    rows = {str(row[0].lines): value for row, value in zip(table.rows, table.values, strict=True)}
    assert Target.parse(rows["('tenant', 'within all')"]) == Target("semaphore", "tenant", None, ("all",))
    assert Target.parse(rows["('all',)"]).within == ()


def test_readers_and_writers_are_shown_in_words(kit):
    with ReadWriteLock("prices").read, ReadWriteLock("prices").read:
        figures, tables = shown()
        slots = next(table for title, table in tables.items() if title.startswith("Slots"))
        assert figures["Held"] == 1
        assert [row[:2] for row in tables["Read/write locks"].rows] == [("prices", "2 readers")]
        assert [str(row[-2]) for row in slots.rows] == ["reader"] * 2
    with ReadWriteLock("prices").write:
        tables = shown()[1]
        assert [str(row[1]) for row in tables["Read/write locks"].rows] == ["1 writer"]
        assert Target.parse(tables["Read/write locks"].values[0]) == Target("rwlock", "prices")


def test_rows_fit_their_columns(kit):
    with Lock("a"), Semaphore("b", 2):
        tables = shown()[1].values()
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert len(table.values) == (len(table.rows) if table.actions else 0)


def test_limit_of_an_operator_is_shown_as_such(kit):
    Semaphore("s", 5).set_limit(2)
    with Semaphore("s", 5):
        ((_name, used, *_, limit_set_by),) = shown()[1]["Semaphores"].rows
    assert (used, str(limit_set_by)) == (Meter(1, 2), "operator")


def test_those_who_wait_and_have_waited_are_shown(kit, waiting):
    lease = Lock("a").acquire()
    thread = waiting(lambda: Lock("a").acquire())
    wait_for(lambda: shown()[0]["Waiting now"] == 1)
    sleep(0.06)  # waits that are shorter are counted by a sample
    lease.release()
    thread.join(10)
    figures, tables = shown()
    ((name, waited, waits, each),) = tables["Longest waits"].rows
    assert (name, waits) == (Lines(("a", "lock")), 1)
    assert waited == each == figures["Waited"]


@pytest.fixture
def many(kit):
    """Hold 103 locks, the semaphore "last" with 3 of 5 slots, and a read/write lock with a reader."""
    leases = [Lock(f"n{number}", timeout=20 + number).acquire() for number in range(103)]
    leases += [Semaphore("last", 5, timeout=200).acquire() for _ in range(3)]
    leases.append(ReadWriteLock("prices", timeout=300).read.acquire())
    yield kit
    for lease in leases:
        lease.release()


def test_figures_are_those_of_all_pages(many, waiting):
    awaited = Lock("first", timeout=10), Lock("later", timeout=400), Semaphore("full", 1, timeout=400)
    leases = [lock.acquire() for lock in awaited]
    threads = [waiting(partial(lock.acquire, blocking_timeout=30)) for lock in awaited]
    for page in ("", "1", "2"):
        figures, _tables = shown(page=page)
        assert (figures["Held"], figures["Waiting now"]) == (108, 3)
    for lease, thread in zip(leases, threads, strict=True):
        lease.release()
        thread.join(10)
    assert shown()[0]["Waiting now"] == 0


@pytest.mark.parametrize(
    "make", [Lock, FairLock, lambda name: Semaphore(name, 1), lambda name: ReadWriteLock(name).write]
)
def test_waiters_of_each_kind_are_counted_until_they_give_up(kit, make, waiting):
    lease = make("a").acquire()
    thread = waiting(partial(make("a").acquire, blocking_timeout=1))
    assert shown()[0]["Waiting now"] == 1
    thread.join(10)
    assert shown()[0]["Waiting now"] == 0
    lease.release()


def test_index_forgets_names_with_waiters_when_others_wait(kit):
    index = bucket_of(HeldName.of("lock", "a"), "default").key("live")
    kit.client.zadd(index, {"waits lock:old": 1e14 + 1000})
    with Lock("a"):
        wait_for(
            lambda: not Lock("a").acquire(blocking_timeout=0.01) and not kit.client.zscore(index, "waits lock:old")
        )


def test_pages_follow_each_other_in_the_order_of_ends(many):
    first, second = shown()[1], shown(page="2")[1]
    assert [row[0].lines[0] for row in first["Locks"].rows] == [f"n{number}" for number in range(100)]
    assert "Semaphores" not in first
    assert [row[0].lines[0] for row in second["Locks"].rows] == ["n100", "n101", "n102"]
    assert [row[0].lines[0] for row in second["Semaphores"].rows] == ["last"]
    (pages,) = [one for one in asking(page="2").content() if isinstance(one, Pages)]
    assert (pages.slug, pages.number, pages.count, pages.asked) == ("locks", 2, 2, {})
    (pages,) = [one for one in asking(page="2", range="24").content() if isinstance(one, Pages)]
    assert pages.asked == {"range": "24"}


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "9" * 30, "\u0661", "3"])
def test_page_that_does_not_exist_is_the_first_or_the_last(many, page):
    (pages,) = [one for one in asking(page=page).content() if isinstance(one, Pages)]
    assert pages.number == (2 if page == "3" else 1)


def test_search_finds_names_by_a_part_in_any_case(many):
    figures, tables = shown(name="N10")
    assert [row[0].lines[0] for row in tables["Locks"].rows] == ["n10", "n100", "n101", "n102"]
    assert (figures["Names that match"], figures["Held"]) == (4, 105)
    assert "Semaphores" not in tables
    assert "Semaphores" in shown(name="LAST")[1]
    assert str(shown(name="nobody")[1]["Locks and semaphores"].empty) == "Nothing that is held matches the search."


def test_inner_semaphore_is_found_by_the_name_of_the_outer_one(kit):
    with Semaphore("tenant", 2, within=Semaphore("all", 9)):
        assert len(shown(name="all")[1]["Semaphores"].rows) == 2
        assert len(shown(name="tenant")[1]["Semaphores"].rows) == 1


def test_page_takes_two_round_trips(kit, monkeypatch):
    from redis_kit.core.client.single import Client

    trips = []
    for name in ("call", "batch", "block"):
        original = getattr(Client, name)
        monkeypatch.setattr(Client, name, lambda *args, original=original: [trips.append(1), original(*args)][1])
    with Lock("a"), Semaphore("b", 2):
        shown()
        trips.clear()
        shown()
        assert len(trips) == 2


def test_effect_of_a_release_names_the_holder_and_counts_who_waits(kit, waiting):
    lease = Lock("a").acquire()
    thread = waiting(lambda: Lock("a").acquire())
    wait_for(lambda: shown()[0]["Waiting now"] == 1)
    (value,) = shown()[1]["Locks"].values
    text = LocksPanel().actions()["release"].effect(value).text
    assert text.startswith("1 lease ends, held by ")
    assert "MainThread, tests/locks/dashboard/test_panel.py:" in text
    assert "1 caller is waiting. The code that holds it is not stopped" in text
    lease.release()
    thread.join(10)
    with pytest.raises(InvalidValue, match="a was released before"):
        LocksPanel().actions()["release"].effect(value)


def test_effect_on_a_semaphore_counts_its_leases(kit):
    inner = Semaphore("tenant", 9, within=Semaphore("all", 9))
    leases = [inner.acquire() for _ in range(7)]
    effect = LocksPanel().actions()["release_all"].effect
    for target in (Target("semaphore", "all"), Target("semaphore", "tenant", within=("all",))):
        assert effect(target.value).text.startswith("7 leases end, held by ")
        assert "; …. The code that holds it is not stopped" in effect(target.value).text
    one = Target("semaphore", "tenant", leases[3].fence, ("all",))
    assert effect(one.value).text.startswith("1 lease ends")
    limit = LocksPanel().actions()["set_limit"].effect
    assert limit(Target("semaphore", "all").value).text.startswith("In use: 7 of 9 slots. Waiting: 0.")
    assert limit(Target("semaphore", "other").value).text.startswith("No slot is in use.")


def test_released_lock_is_free_and_its_holder_is_told(kit):
    lease = Lock("a").acquire()
    (value,) = shown()[1]["Locks"].values
    assert LocksPanel().actions()["release"].named(value) == "a"
    sentence = LocksPanel().release(value)
    assert sentence.startswith("1 lease of a was released, held by ")
    assert "MainThread, tests/locks/dashboard/test_panel.py:" in sentence
    assert not Lock("a").locked()
    with pytest.raises(LockLost):
        lease.extend()


def test_lock_that_changed_hands_since_the_page_was_drawn_is_left_alone(kit):
    lease = Lock("a").acquire()
    (value,) = shown()[1]["Locks"].values
    lease.release()
    later = Lock("a").acquire()
    with pytest.raises(InvalidValue, match="a was released before"):
        LocksPanel().release(value)
    assert later.extend()


def test_one_slot_or_all_slots_are_released(kit):
    leases = [Semaphore("s", 9).acquire() for _ in range(8)]
    slots = next(table for title, table in shown()[1].items() if title.startswith("Slots"))
    LocksPanel().release(slots.values[0])
    assert Semaphore("s", 9).used() == 7
    sentence = LocksPanel().release_all(shown()[1]["Semaphores"].values[0])
    assert sentence.startswith("7 leases of s were released, held by ")
    assert sentence.count("MainThread") == 5
    assert sentence.endswith("; ….")
    assert Semaphore("s", 9).used() == 0
    assert len(leases) == 8


@pytest.mark.parametrize(
    ("kind", "acquire"),
    [("semaphore", lambda: Semaphore("s", 9).acquire()), ("rwlock", lambda: ReadWriteLock("s").read.acquire())],
)
def test_leases_that_began_after_the_confirmation_are_not_released(kit, kind, acquire):
    panel, first = LocksPanel(), acquire()
    acquire()
    action, value = panel.actions()["release_all"], Target(kind, "s").value
    confirmed = action.effect(value).value
    assert action.named(confirmed) == "s"
    first.release()
    later = acquire()
    assert panel.release_all(confirmed).startswith("1 lease of s was released")
    later.extend()
    for call in (panel.release_all, action.effect):
        with pytest.raises(InvalidValue, match="s was released before"):
            call(confirmed)
    later.release()


def test_limit_is_set_and_taken_back(kit):
    with Semaphore("s", 1):
        (value,) = shown()[1]["Semaphores"].values
        assert LocksPanel().set_limit(value, "3") == "The limit of s is 3 now."
        assert Semaphore("s", 1).acquire(blocking=False)
        assert "the limit in the code again" in LocksPanel().set_limit(value, "")
        assert not Semaphore("s", 1).acquire(blocking=False)


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "many", "1000001", "9" * 50, "\u0661"])
def test_wrong_limit_is_refused(kit, limit):
    with pytest.raises(InvalidValue):
        LocksPanel().set_limit(Target("semaphore", "s").value, limit)
    assert not kit.keys()


@pytest.mark.parametrize("name", ["a/b:c", "100%", "%2F", " ", "部门\n", "/", "lock/1/x"])
def test_target_is_read_as_it_was_written(name):
    for target in (Target("lock", name, 12), Target("semaphore", name), Target("semaphore", name, 0, (name, "b"))):
        assert Target.parse(target._replace(fence=None, last_fence=7).value).last_fence == 7
        assert Target.parse(target.value) == target
    assert Target.parse(Target("semaphore", name, None, (name,)).value).within == (name,)


@pytest.mark.parametrize(
    "value", ["", "a", "lock/1", "lock/1/", "lock/x/a", "padlock/1/a", "lock/1//a", "lock/\u0661/a"]
)
def test_what_is_no_target_is_refused(value):
    with pytest.raises(InvalidValue, match="not a lock or semaphore"):
        Target.parse(value)
    with pytest.raises(InvalidValue):
        LocksPanel().release_all(value)


def test_name_that_can_t_be_one_is_refused(kit):
    with pytest.raises(InvalidName):
        LocksPanel().set_limit(Target("semaphore", "x" * 600).value, "1")


def test_tile_counts_all_locks_and_warns_of_one_that_blocks_others(kit, waiting):
    leases, panel = [Lock(name, timeout=300).acquire() for name in ("report", "other")], LocksPanel()

    def summary():
        ((alias, read),) = panel.reads().items()
        return flow.run(read, connections.client(alias))

    def tile(summary):
        return panel.tile({"default": summary})

    assert [figure.value for figure in tile(summary()).figures[:2]] == [2, 0]
    thread = waiting(partial(Lock("report").acquire, blocking_timeout=30))
    found = summary()
    assert [figure.value for figure in tile(found).figures[:2]] == [2, 1]
    assert not tile(found).alerts
    (held, callers, awaited), *rest = found
    blocking = [lock._replace(waiters=2, held_for=61.0) for lock in awaited]
    brief = [lock._replace(waiters=2, held_for=59.0) for lock in awaited]
    (alert,) = tile([(held, callers, blocking + brief), *rest]).alerts
    assert (str(alert.text), alert.asked) == ("report is held for", {"name": "report"})
    assert alert.hint.startswith("2 callers wait for it.")
    many = [lock._replace(name=str(at), waiters=1, held_for=61.0 + at) for at in range(9) for lock in blocking[:1]]
    names = ["8 is held for", "7 is held for", "6 is held for", "6 others"]
    assert [str(alert.text) for alert in tile([(held, callers, many), *rest]).alerts] == names
    for lease in leases:
        lease.release()
    thread.join(10)


def past(minutes, **numbers):
    """Return the waits of some minutes: these numbers in the last minute but one, and nothing in the others."""
    end = datetime(2026, 11, 23, 15, 59, tzinfo=UTC)
    none = [LockWaits(end - timedelta(minutes=ago), 0, 0.0, 0.0, 0, 0) for ago in reversed(range(minutes))]
    return [*none[:-2], none[-2]._replace(**numbers), none[-1]]


def test_charts_show_waits_of_the_chosen_range():
    stored = past(360, waits=5, waited=20.0, longest=12.5, timeouts=2)
    choice, ended, longest = panel.wait_charts(stored, RANGES[6], {})
    assert (choice.slug, choice.chosen) == ("locks", 6)
    assert [(str(name), values[-1], sum(values)) for name, values in ended.parts] == [
        ("Acquired", 3, 3),
        ("Timed out", 2, 2),
    ]
    assert longest.bars[-1][1].total_seconds() == 12.5
    (*_, lost) = panel.wait_charts(past(60, lost=3), RANGES[1], {})
    assert (str(lost.title), lost.bars[-2:]) == ("Lost leases", [("15:58", 3), ("15:59", 0)])


def test_page_reads_the_chosen_range_in_the_round_trip_of_the_others(kit, trips):
    assert not [piece for piece in asking(name="a").content() if isinstance(piece, Ranges)]
    for asked, hours in (("", 1), ("24", 24), ("2160", 2160), ("x", 1)):
        trips.clear()
        (choice,) = [piece for piece in asking(range=asked).content() if isinstance(piece, Ranges)]
        assert choice.chosen == hours
        assert len(trips) == 1  # with the names that are held, and those with the longest waits


def test_tile_has_the_waits_of_an_hour_and_warns_of_lost_leases():
    def tile(recent):
        return LocksPanel().tile({"default": [(0, 0, []), [], recent]})

    assert not tile(past(60)).alerts
    assert str(tile(past(60)).trend.value) == "0 waits in an hour"
    found = tile(past(60, waits=1, lost=3))
    assert (str(found.trend.value), list(found.trend.values)[-2:]) == ("1 wait in an hour", [1, 0])
    (alert,) = found.alerts
    assert (str(alert.text), alert.value) == ("Leases lost in an hour", 3)


def test_locks_of_another_connection_are_shown_and_released_there(kit, debian_redis):
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "other/2": debian_redis.connection})
    here, there = Lock("a", timeout=300).acquire(), Lock("a", timeout=300, using="other/2").acquire()
    Semaphore("s", 3, using="other/2").acquire()
    assert [field.name for field in LocksPanel().search().fields] == ["connection", "name"]
    figures, tables = shown(connection="other/2")
    assert figures["Held"] == 2
    (value,) = tables["Locks"].values
    assert LocksPanel().actions()["release"].named(value) == "a (other/2)"
    assert LocksPanel().release(value).startswith("1 lease of a (other/2) was released")
    with pytest.raises(LockLost):
        there.release()
    here.release()
    other, typed = asking(connection="other/2"), LocksPanel().actions()["set_limit"]
    (row,) = shown(connection="other/2")[1]["Semaphores"].values
    effect = other.effect_of(typed, row)
    assert effect.text.startswith("In use: 1 of 3 slots.")
    assert typed.named(effect.value) == "s (other/2)"
    assert other.set_limit(row, "1") == "The limit of s (other/2) is 1 now."
    assert Semaphore("s", 3, using="other/2").acquire(blocking=False) is None
    assert Semaphore("s", 3).acquire(blocking=False)
    with pytest.raises(InvalidValue, match="no connection with this name"):
        shown(connection="missing")
    connections.close()
