import subprocess
import textwrap
import threading

import pytest

from redis_kit.core import connections, flow
from redis_kit.core.errors import RedisUnavailable
from redis_kit.pageviews import PageViews, counter, dropped, flush
from redis_kit.pageviews.batch import Event, ViewBatch
from redis_kit.pageviews.buffer import Buffer, Dropped, buffer
from redis_kit.pageviews.component import PageViews as PageViewsComponent
from redis_kit.pageviews.periods import days, now
from tests.fixtures.fork_server import start_python
from tests.fixtures.servers import wait_for


@pytest.fixture
def hasty(monkeypatch):
    """The thread gives a server a tenth of its time."""
    monkeypatch.setattr(connections, "WORKER", 0.3)


def told(caplog):
    return [one for one in caplog.records if one.name == "redis_kit.pageviews"]


def record(count, *, page="news", key=""):
    return sum(buffer.record(Event(now(), page, key, f"visitor {number}")) for number in range(count))


def test_views_are_exact_under_several_threads(kit):
    threads = [threading.Thread(target=record, args=(700,), kwargs={"page": f"p{number % 3}"}) for number in range(9)]
    flushing = [threading.Thread(target=flush) for _ in range(4)]
    for thread in (*threads, *flushing):
        thread.start()
    for thread in (*threads, *flushing):
        thread.join()
    assert flush()
    assert dict(PageViews.site().top()) == {"p0": 2100, "p1": 2100, "p2": 2100}
    assert PageViews.site().views() == 6300
    assert PageViews.site().visitors() == pytest.approx(700, rel=0.03)
    assert dropped() == Dropped(0, 0, 0, 0)


def test_dropped_views_are_added_up_for_all_processes_after_the_next_flush(kit, monkeypatch):
    monkeypatch.setattr(Buffer, "_start", lambda self: None)
    first, second = Buffer(), Buffer()
    for process, count in ((first, 3), (second, 4)):
        process.drop("outage", count)
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert first.flush()  # no view waits
    kit.connect(kit.server.connection)
    for process in (first, second, first):
        assert process.flush()
    today = days(None, None)
    assert PageViews.site().run_flow(counter.dropped(today)) == [7]
    assert PageViews.site().views() == 0


def test_dropped_views_are_reported_by_themselves_also_after_an_outage(own_kit):
    own_kit.server.stop()
    buffer.drop("outage", 3)
    own_kit.server.start()
    today = days(None, None)
    wait_for(lambda: PageViews.site().run_flow(counter.dropped(today), if_open=[]) == [3], timeout=20)


def test_view_is_sent_when_no_further_one_comes(kit, monkeypatch):
    monkeypatch.setattr(Buffer, "INTERVAL", 60.0)
    record(3)
    wait_for(lambda: PageViews("news").views() == 3, timeout=10)


def test_view_is_sent_in_time_though_others_come(kit, monkeypatch):
    monkeypatch.setattr(Buffer, "INTERVAL", 0.2)
    monkeypatch.setattr(Buffer, "QUIET", 0.15)

    def counted():
        record(1)
        return PageViews("news").views()

    wait_for(counted, timeout=10)


def test_batch_of_five_hundred_is_sent_at_once(kit, monkeypatch):
    for name in ("INTERVAL", "QUIET"):
        monkeypatch.setattr(Buffer, name, 60.0)
    record(500)
    wait_for(lambda: PageViews("news").views() == 500, timeout=10)


def test_thread_that_ends_is_replaced_by_the_next_view(kit, monkeypatch):
    monkeypatch.setattr(buffer, "_send_all", lambda is_reset: None)  # ends at once
    record(3)
    wait_for(lambda: buffer._thread is None)
    monkeypatch.undo()
    record(1)
    wait_for(lambda: PageViews("news").views() == 4, timeout=10)


def test_views_of_a_test_are_not_counted_in_the_next(kit, no_thread):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    record(700)
    buffer.drop("failed")
    assert not flush()
    PageViewsComponent().forget()
    assert not buffer.waiting
    kit.connect(kit.server.connection)
    assert flush()
    assert PageViews("news").views() == 0
    assert PageViews.site().run_flow(counter.dropped(days(None, None))) == [0]


def test_flush_is_one_pipeline(kit, commands, no_thread):
    record(3, key="1")
    flush()
    record(400, key="1")
    with commands(kit) as sent:
        flush()
    assert sent == ["EVALSHA"] * 3


def test_flush_is_the_same_in_an_event_loop(kit, no_thread, twin):
    record(3)
    assert twin(buffer.flush)
    assert twin(PageViews("news").views) == 3


def test_full_buffer_drops_and_counts(kit, no_thread):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert record(600) == 600
    assert not flush()
    assert record(Buffer.CAPACITY) == Buffer.CAPACITY - 600
    assert dropped() == Dropped(overflow=600, outage=0, refused=0, failed=0)
    assert not flush()
    kit.connect(kit.server.connection)
    assert flush()
    assert PageViews("news").views() == PageViews.site().views() == Buffer.CAPACITY
    assert record(1) == 1


@pytest.mark.parametrize("servers", ["valkey", "debian_redis", "cluster"])
def test_batch_that_is_sent_twice_counts_once(request, settings, servers):
    from tests.fixtures.kit import Kit

    kit = Kit(request.getfixturevalue(servers), settings)
    for number in (1, 2):
        events = [Event(now(), "post", str(key), f"visitor {key}") for key in range(20)]
        counting = ViewBatch(events, using="default", writer="w", number=number)
        for _ in range(3):
            assert flow.run(counting.send(), connections.client("default", "worker")) == 0
    assert PageViews.site().views() == PageViews("post").views() == 40
    assert PageViews("post", 7).views() == 2
    assert dict(PageViews("post").top(100)) == {str(key): 2 for key in range(20)}
    kit.close()


def test_batches_of_all_processes_take_one_key_of_each_name_and_hour(kit):
    moment = now()
    for writer in ("a", "b", "c"):
        for number in (1, 2, 2):
            events = [Event(moment, "post", str(key), "") for key in range(3)]
            batch = ViewBatch(events, using="default", writer=writer, number=number)
            flow.run(batch.send(), connections.client("default", "worker"))
    assert PageViews.site().views() == 18
    keys = [name for name in kit.keys() if ":batches:" in name]
    assert len(keys) == 2 + 3  # the site, the page and its objects
    assert all(3_500_000 < kit.client.pttl(name) <= 3_600_000 for name in keys)
    assert not [name for name in kit.keys() if "batch:" in name]


def test_server_that_freezes_counts_nothing_twice(own_kit, no_thread, hasty):
    record(10)
    wait_for(flush)
    record(300)
    own_kit.server.freeze()
    try:
        assert not flush()
        record(50)
    finally:
        own_kit.server.thaw()
    wait_for(flush)
    assert PageViews("news").views() == PageViews.site().views() == 360
    assert dropped() == Dropped(0, 0, 0, 0)


def test_lost_replies_count_nothing_twice(proxy, kit, no_thread, hasty):
    kit.connect(proxy.connection)
    direct = {"URL": f"redis://127.0.0.1:{proxy.target}/0"}
    kit.options(CONNECTIONS={"default": proxy.connection, "direct": direct})
    record(10, key="1")
    wait_for(flush)
    record(300, key="1")
    with proxy.fault("drop_replies"):
        assert not flush()
        look = PageViews("news", using="direct")
        wait_for(lambda: look.views() == 310)  # they had arrived
    wait_for(flush)
    assert PageViews("news").views() == PageViews.site().views() == 310
    assert PageViews("news", 1).views() == 310


def test_views_wait_for_a_server_that_was_stopped(own_kit):
    record(10)
    wait_for(flush)
    own_kit.server.stop()
    record(700)
    wait_for(lambda: buffer._error, timeout=10)
    own_kit.server.start()
    wait_for(lambda: PageViews("news").views() == 700, timeout=20)
    assert dropped() == Dropped(0, 0, 0, 0)


def test_batch_that_may_be_stored_is_dropped_before_the_server_forgets_it(proxy, kit, no_thread, hasty, monkeypatch):
    kit.connect(proxy.connection)
    record(1)
    wait_for(flush)
    monkeypatch.setattr("redis_kit.pageviews.buffer.MAX_RETRY_TIME", 0.0)
    record(700)
    with proxy.fault("drop_replies"):
        assert not flush()
        assert dropped() == Dropped(overflow=0, outage=500, refused=0, failed=0)
    wait_for(flush)
    assert PageViews("news").views() == 701  # the first 500 had arrived


def test_batch_that_was_never_sent_is_not_dropped(kit, no_thread, monkeypatch):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    record(700)
    monkeypatch.setattr("redis_kit.pageviews.buffer.MAX_RETRY_TIME", 0.0)
    assert not flush()
    assert not flush()
    assert dropped() == Dropped(0, 0, 0, 0)
    kit.connect(kit.server.connection)
    assert flush()
    assert PageViews("news").views() == 700


def test_key_of_another_type_affects_its_page_only_and_is_logged_once(kit, no_thread, caplog):
    kit.client.lpush(PageViews("spoilt").key(f"visitors:{now():%Y-%m}"), "x")
    kit.client.set(PageViews("corrupt").key(f"visitors:{now():%Y-%m-%d}"), "HYLL?")
    for page in ("spoilt", "corrupt", "good"):
        record(5, page=page)
    assert flush()
    assert [PageViews(page).views() for page in ("spoilt", "corrupt", "good")] == [0, 0, 5]
    assert PageViews.site().views() == 15
    assert dropped() == Dropped(overflow=0, outage=0, refused=10, failed=0)
    for _ in range(3):
        record(1, page="spoilt")
        record(1, page="corrupt")
        assert flush()
    assert dropped() == Dropped(overflow=0, outage=0, refused=16, failed=0)
    spoilt, corrupt = sorted((one.message for one in told(caplog)), key=lambda text: "corrupt" in text)
    assert f"The key '{PageViews('spoilt').key(f'visitors:{now():%Y-%m}')}' is a list in place of a string" in spoilt
    assert f"The HyperLogLog {PageViews('corrupt').key(f'visitors:{now():%Y-%m-%d}')} is corrupt" in corrupt


@pytest.mark.parametrize("part", ["views:%Y-%m", "views:%Y-%m-%d"])
def test_field_that_is_not_a_number_affects_its_page_only_and_completely(kit, no_thread, part):
    moment = now()
    field = moment.day if part == "views:%Y-%m" else moment.hour
    kit.client.hset(PageViews("spoilt").key(f"{moment:{part}}"), field, "many")
    for page in ("spoilt", "good"):
        buffer.record(Event(moment, page, "", "joe"))
    assert flush()
    assert dropped() == Dropped(0, 0, refused=1, failed=0)
    assert PageViews("spoilt").key(f"visitors:{moment:%Y-%m}") not in kit.keys()
    assert PageViews("good").views() == 1
    assert PageViews.site().views() == 2


def test_key_of_another_type_of_the_site_does_not_affect_pages(kit, no_thread):
    kit.client.set(PageViews.site().key(f"top:{now():%Y-%m-%d}"), "x")
    record(5, key="1")
    assert flush()
    assert dropped() == Dropped(0, 0, refused=5, failed=0)
    assert PageViews("news").views() == PageViews("news", 1).views() == 5


def test_wrong_type_of_the_set_of_pages_counts_new_pages_as_other(kit, no_thread, caplog):
    kit.client.set(PageViews.site().key(f"pages:{now():%Y-%m-%d}"), "x")
    for _ in range(3):
        record(2)
        assert flush()
    assert dropped() == Dropped(0, 0, 0, 0)
    assert PageViews.site().top() == [("(other)", 6)]
    (one,) = told(caplog)
    assert "is a string in place of a set" in one.message


PROCESS = """
    import os, sys
    import django
    from django.conf import settings
    apps = ["redis_kit"]
    settings.configure(INSTALLED_APPS=apps, SECRET_KEY="x" * 50, USE_TZ=True, TIME_ZONE={zone!r}, REDIS_KIT={kit!r})
    django.setup()
    from redis_kit.pageviews.buffer import buffer
    from redis_kit.pageviews.batch import Event
    from redis_kit.pageviews.periods import now

    def record(count):
        for number in range(count):
            buffer.record(Event(now(), "news", "", ""))
"""


def run(kit, code, **options):
    its = {"kit": dict(kit.settings.REDIS_KIT), "zone": kit.settings.TIME_ZONE}
    source = textwrap.dedent(PROCESS).format(**its) + textwrap.dedent(code)
    return start_python(["-c", source], **options)


def exit_code(process):
    process.communicate(timeout=30)
    return process.returncode


def test_views_are_counted_when_the_process_ends(kit):
    assert exit_code(run(kit, "record(7)")) == 0
    assert PageViews("news").views() == 7
    stopped = run(
        kit,
        """
        import signal, time
        signal.signal(signal.SIGTERM, lambda *args: sys.exit(0))
        buffer.flush()
        record(5)
        print("ready", flush=True)
        while True:  # a signal just before a longer sleep would be seen after it only
            time.sleep(0.05)
        """,
        stdout=subprocess.PIPE,
    )
    assert stopped.stdout.readline() == "ready\n"
    stopped.terminate()
    assert exit_code(stopped) == 0
    assert PageViews("news").views() == 12


def test_forked_child_counts_its_own_views(kit):
    code = """
    import time
    record(40)
    child = os.fork()
    if child == 0:
        record(2)
        deadline = time.monotonic() + 10
        while buffer._events or buffer._batch:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    """
    assert exit_code(run(kit, code, stderr=subprocess.PIPE)) == 0
    assert PageViews("news").views() == 42


def test_outage_at_the_end_is_not_an_error(kit):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    assert exit_code(run(kit, "record(7)", stderr=subprocess.PIPE)) == 0
    with pytest.raises(RedisUnavailable):
        PageViews("news", on_failure="raise").views()


@pytest.mark.parametrize("wrong", [{"PAGEVIEWS": {"VISITOR": 3}}, {"PAGEVIEWS": 3}, "text"])
def test_wrong_settings_make_no_noise_when_the_process_ends(settings, caplog, wrong):
    settings.REDIS_KIT = wrong
    Buffer().close()
    assert not caplog.records


def test_views_that_wait_under_wrong_settings_are_lost_with_a_warning(settings, caplog, monkeypatch):
    waiting = Buffer()
    monkeypatch.setattr(waiting, "_start", lambda: None)
    waiting.record(Event(now(), "post", "1", "visitor"))
    settings.REDIS_KIT = {"PAGEVIEWS": 3}
    waiting.close()
    assert "1 page views are lost with this process: REDIS_KIT['PAGEVIEWS'] is a whole number" in caplog.text
