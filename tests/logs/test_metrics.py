import logging

from redis_kit.core import connections, flow
from redis_kit.logs.buffer import buffer
from redis_kit.logs.metrics import LogMetrics


def test_records_are_counted_by_level_since_the_first_one(kit, log, no_thread):
    record = log.makeRecord(log.name, logging.ERROR, "/shop/views.py", 1, "Two hours ago", (), None)
    record.created -= 7200
    log.handle(record)
    log.error("Order %d", 1)
    log.info("Order %d", 1)
    buffer.drop()
    buffer.flush()
    samples = flow.run(LogMetrics().read("default", 100), connections.client())
    counts = {(sample.metric.name, *sample.labels): sample.value for sample in samples if sample.value}
    assert counts == {
        ("redis_kit_log_records_dropped_total",): 1,
        ("redis_kit_log_records_total", "ERROR"): 2,
        ("redis_kit_log_records_total", "INFO"): 1,
    }
    assert not list(flow.run(LogMetrics().read("other", 100), connections.client()))
