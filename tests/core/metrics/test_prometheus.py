"""The metrics of real servers, read back by prometheus_client's own parser."""

from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from redis_kit.core import connections
from redis_kit.core.component import components
from redis_kit.core.logs.rate_limit import LogRateLimit
from redis_kit.core.metrics import prometheus
from redis_kit.core.metrics.families import MINUTES, Metric, since_block
from redis_kit.core.metrics.prometheus import RedisKitCollector, exposition
from redis_kit.locks import Lock
from redis_kit.queues import Queue
from redis_kit.throttling import Throttle
from tests.signins.people import saved


def scraped():
    """Return the value of each sample by its name and labels, without the connection."""
    body, _content_type = exposition()
    samples = [
        (
            (sample.name, *(value for label, value in sorted(sample.labels.items()) if label != "connection")),
            sample.value,
        )
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    ]
    assert len(dict(samples)) == len(samples)
    return dict(samples)


def all_metrics():
    return [metric for component in components() for source in component.load_metrics() for metric in source.metrics]


def test_families_follow_the_conventions_of_names(kit):
    metrics = all_metrics()
    assert len(metrics) >= 20
    assert len({metric.name for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert metric.name.startswith("redis_kit_")
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert not metric.name.endswith(("_ms", "_mb", "_minutes"))
        assert metric.help.endswith(".")


def test_numbers_are_those_of_the_components(kit, db):
    queue = Queue("mail")
    queue.put_many(["first", "second", "third"])
    job, failing = queue.claim(2)
    queue.ack(job)
    queue.nack(failing, max_attempts=1)
    throttle = Throttle("login", "2/h")
    for _ in range(5):
        throttle.hit("ann")
    lease = Lock("invoice:42").acquire()
    saved("ann").sign_in()
    samples = scraped()
    lease.release()
    assert samples["redis_kit_up",] == 1
    assert samples["redis_kit_locks_held",] == 1
    assert samples["redis_kit_sign_ins_today", "app.user"] == 1
    assert samples["redis_kit_queue_jobs", "mail", "ready"] == 1
    assert samples["redis_kit_queue_jobs", "mail", "dead"] == 1
    assert samples["redis_kit_queue_jobs_done_total", "mail"] == 1
    assert samples["redis_kit_queue_attempts_failed_total", "mail"] == 1
    assert samples["redis_kit_queue_attempts_begun_total", "mail"] == 2
    assert samples["redis_kit_throttle_allowed_total", "login"] == 2
    assert samples["redis_kit_throttle_refused_total", "login"] >= 1
    assert not any(name.endswith("omitted") and value for (name, *_), value in samples.items())
    del throttle


def test_scrape_takes_three_round_trips_and_writes_nothing(kit, trips, commands):
    for number in range(20):
        Queue(f"queue {number}").put("job")
    throttles = [Throttle(f"throttle {number}", "2/h") for number in range(20)]
    scraped()
    trips.clear()
    changes = kit.client.info("persistence")["rdb_changes_since_last_save"]
    scraped()
    assert len(trips) <= 3
    assert kit.client.info("persistence")["rdb_changes_since_last_save"] == changes
    assert throttles


def test_scrape_of_each_kind_of_server(any_kit):
    Queue("mail").put("job")
    samples = scraped()
    assert samples["redis_kit_up",] == 1
    assert samples["redis_kit_queue_jobs", "mail", "ready"] == 1
    servers = [key for key in samples if key[0] == "redis_kit_server_uptime_seconds"]
    assert len(servers) == (3 if "CLUSTER" in any_kit.server.connection else 1)
    assert not any(value for (name, *_), value in samples.items() if name == "redis_kit_scrape_failed")


def test_names_of_queues_are_bounded(kit, monkeypatch):
    monkeypatch.setattr(prometheus, "LABELS", 5)
    for number in range(12):
        Queue(f"queue {number}").put("job")
    samples = scraped()
    assert len([key for key in samples if key[0] == "redis_kit_queue_paused"]) == 5
    assert samples["redis_kit_queues_omitted",] == 8


def test_unavailable_server_is_a_sample_and_no_error(own_kit, monkeypatch, caplog):
    monkeypatch.setattr(prometheus, "_log_limit", LogRateLimit())
    scraped()
    own_kit.server.stop()
    connections.close()
    samples = scraped()
    scraped()
    (line,) = [record.getMessage() for record in caplog.records if record.name == "redis_kit.metrics"]
    assert line.startswith("Metrics of locks, throttling, queues, ")
    assert samples["redis_kit_up",] == 0
    assert samples["redis_kit_scrape_failed", "queues"] == 1


def test_damaged_queue_does_not_hide_the_others(kit):
    Queue("mail").put("job")
    kit.client.set(Queue("news").key("ready"), "not a queue")
    kit.client.sadd(f"{kit.prefix}:{{queues}}:names", "news")
    samples = scraped()
    assert samples["redis_kit_queue_jobs", "mail", "ready"] == 1
    assert samples["redis_kit_queues_damaged",] == 1


def test_hostile_names_are_labels(kit):
    name = 'x"} 1\n{evil="\\'
    Queue(name).put("job")
    assert scraped()["redis_kit_queue_jobs", name, "ready"] == 1


def test_collector_joins_a_registry_of_the_project(kit):
    registry = CollectorRegistry()
    registry.register(RedisKitCollector())
    assert registry.get_sample_value("redis_kit_up", {"connection": "default"}) == 1


def test_counter_begins_again_each_hour():
    minutes = list(range(MINUTES, 0, -1))
    assert since_block(60 * 7, minutes) == minutes[-1]
    assert since_block(60 * 7 + 1, minutes) == sum(minutes[-2:])
    assert since_block(60 * 8 - 1, minutes) == sum(minutes[1:])


def test_prometheus_sees_each_run_of_an_hourly_job():
    """It takes a smaller number for a restart, and counts what is added from then on."""
    runs = [int(minute % 60 == 0) for minute in range(60 * 10)]
    scrapes = [since_block(minute, runs[max(0, minute - MINUTES + 1) : minute + 1]) for minute in range(60, 600)]
    increase = sum(after - before if after >= before else after for before, after in pairwise(scrapes))
    assert increase == sum(runs[60:])


def test_sample_needs_its_labels():
    with pytest.raises(TypeError, match="has the labels"):
        Metric("redis_kit_x", "gauge", "X.", ("queue",)).sample(1)
