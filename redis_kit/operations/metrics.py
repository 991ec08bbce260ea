"""The metrics of servers."""

from collections.abc import Iterator

from redis_kit.core.metrics.families import Metric, MetricSource, Sample
from redis_kit.operations.server import ServerReport, advice, server_reports

SERVER = ("server",)
INFO = Metric(
    "redis_kit_server_info", "gauge", "A server, its kind, version and role.", ("server", "kind", "version", "role")
)
FIELDS = {
    "uptime_in_seconds": Metric("redis_kit_server_uptime_seconds", "gauge", "Seconds since the start.", SERVER),
    "used_memory": Metric("redis_kit_server_memory_used_bytes", "gauge", "Memory in use.", SERVER),
    "used_memory_rss": Metric("redis_kit_server_memory_resident_bytes", "gauge", "Resident memory.", SERVER),
    "maxmemory": Metric("redis_kit_server_memory_max_bytes", "gauge", "maxmemory; 0 without a limit.", SERVER),
    "connected_clients": Metric("redis_kit_server_connections", "gauge", "Open connections.", SERVER),
    "maxclients": Metric("redis_kit_server_connections_max", "gauge", "maxclients.", SERVER),
    "total_commands_processed": Metric("redis_kit_server_commands_total", "counter", "Commands processed.", SERVER),
    "rejected_connections": Metric(
        "redis_kit_server_connections_rejected_total", "counter", "Connections refused at maxclients.", SERVER
    ),
    "evicted_keys": Metric("redis_kit_server_keys_evicted_total", "counter", "Keys evicted at maxmemory.", SERVER),
    "expired_keys": Metric("redis_kit_server_keys_expired_total", "counter", "Keys expired.", SERVER),
    "rdb_changes_since_last_save": Metric(
        "redis_kit_server_unsaved_changes", "gauge", "Changes since the last snapshot.", SERVER
    ),
}
KEYS = Metric("redis_kit_server_keys", "gauge", "Keys of the database, of all programs.", SERVER)
REPLICAS = Metric("redis_kit_server_replicas", "gauge", "Connected replicas.", SERVER)
LAG = Metric("redis_kit_server_replica_lag_seconds", "gauge", "The longest lag of a replica.", SERVER)
CLOCK = Metric("redis_kit_server_clock_ahead_seconds", "gauge", "The clock, less that of the scraped process.", SERVER)
ADVICE = Metric("redis_kit_server_advice", "gauge", "Pieces of advice of rk_doctor, by level.", ("server", "level"))


class ServerMetrics(MetricSource):
    """The state of the servers of a connection."""

    metrics = (INFO, *FIELDS.values(), KEYS, REPLICAS, LAG, CLOCK, ADVICE)

    def read_servers(self, using: str, limit: int) -> Iterator[Sample]:
        """Return the samples."""
        for report in server_reports(using, sample=False)[:limit]:
            yield from _server(report)


def _server(report: ServerReport) -> Iterator[Sample]:
    where = report.where
    if report.info:
        yield INFO.sample(1, where, report.kind, report.version, report.info.get("role", ""))
        for field, metric in FIELDS.items():
            yield metric.sample(report.number(field), where)
        replicas = report.replicas()
        yield REPLICAS.sample(len(replicas), where)
        yield LAG.sample(max((float(replica.get("lag", 0)) for replica in replicas), default=0), where)
    if report.keys is not None:
        yield KEYS.sample(report.keys, where)
    if not report.error:
        yield CLOCK.sample(report.clock, where)
    levels = [each.level for each in advice(report)]
    for level in ("error", "warning", "note"):
        yield ADVICE.sample(levels.count(level), where, level)
