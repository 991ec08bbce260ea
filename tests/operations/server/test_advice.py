"""Advice: each fault of a server has its text, and what to type."""

from datetime import UTC, datetime, timedelta

import pytest

from redis_kit.operations import advice, server_reports
from redis_kit.operations.server.report import MissingRights, ServerReport, SlowCommand
from tests.fixtures.process import wait_for

INFO = {
    "redis_version": "7.4.6",
    "config_file": "/etc/redis.conf",
    "role": "master",
    "maxmemory": "1000000000",
    "maxmemory_policy": "noeviction",
    "used_memory": "1000000",
    "used_memory_rss": "2000000",
    "aof_enabled": "1",
    "aof_last_write_status": "ok",
    "connected_clients": "5",
    "maxclients": "1000",
}
WELL = ServerReport("default", "here", INFO, {"appendfsync": "everysec"}, 5, 0.0, 0.001, True, "site", [], (), [], [])
COMMANDS = ("CONFIG SET", "ACL SETUSER")
REPLICA = "ip=10.0.0.2,port=6379,state=online,offset=1,lag=1"
NOW = datetime.now(UTC)
LARGE = {"total_system_memory": "16000000000"}
MORE = "Give the server more memory, or shorten the RETENTION"


def given(**fields):
    return WELL._replace(info={**INFO, **fields})


def test_good_server_needs_no_advice():
    assert advice(WELL) == []


@pytest.mark.parametrize(
    ("report", "level", "remedy"),
    [
        (given(maxmemory_policy="allkeys-lru"), "warning", "CONFIG SET maxmemory-policy noeviction"),
        (given(aof_enabled="0"), "warning", "CONFIG SET appendonly yes"),
        (given(redis_version="6.2.1", aof_enabled="0")._replace(refused=("config|get",)), "error", ""),
        (given(aof_last_write_status="err"), "error", "log"),
        (given(rdb_last_bgsave_status="err"), "error", "log"),
        (WELL._replace(options={"appendfsync": "no"}), "warning", "CONFIG SET appendfsync everysec"),
        (given(used_memory="950000000", **LARGE), "warning", "CONFIG SET maxmemory 1431mb"),
        (given(used_memory="1000000001", **LARGE), "error", "CONFIG SET maxmemory 1431mb"),
        (given(used_memory="2600000", maxmemory="1000000", **LARGE), "error", "CONFIG SET maxmemory 4mb"),
        (given(used_memory="950000000", total_system_memory="1500000000"), "warning", MORE),  # 70 % are no room
        (given(used_memory="950000000"), "warning", MORE),  # nobody says how much the machine has
        (given(maxmemory="0", used_memory="900000000", total_system_memory="1000000000"), "note", MORE),
        (given(maxmemory="0"), "note", MORE),
        (given(maxmemory="0", total_system_memory="1000000000"), "note", "CONFIG SET maxmemory 668mb"),
        (given(evicted_keys="3"), "note", "CONFIG RESETSTAT"),
        (given(used_memory_rss="500000000"), "note", "activedefrag"),
        (given(rejected_connections="3"), "warning", "CONFIG SET maxclients 2000, then CONFIG RESETSTAT"),
        (given(connected_clients="990"), "warning", "CONFIG SET maxclients 2000"),
        (given(role="slave"), "error", "SENTINELS"),
        (given(slave0="ip=10.0.0.2,port=6379,state=online,offset=1,lag=60"), "warning", "network"),
        (
            given(slave0=REPLICA)._replace(options={"min-replicas-to-write": "0"}),
            "note",
            "CONFIG SET min-replicas-to-write 1",
        ),
        (given(slave0="ip=10.0.0.2,port=6379,state=wait_bgsave,offset=1,lag=0"), "warning", "network"),
        (WELL._replace(clock=-3.0), "warning", "chronyc"),
        (WELL._replace(scripts_have_time=False), "error", "ACL SETUSER site +eval"),
        (WELL._replace(refused=("info", "slowlog|get")), "note", "ACL SETUSER site +info +slowlog|get"),
        (WELL._replace(refused=("eval", "acl|whoami")), "note", "ACL SETUSER site +acl|whoami"),
        (WELL._replace(missing=[MissingRights("locks", "", ("get", "set"))]), "error", "ACL SETUSER site +get +set"),
        (
            WELL._replace(missing=[MissingRights("locks", "~rk:{locks*", ()), MissingRights("queues", "~q", ())]),
            "note",
            "ACL SETUSER site ~rk:{locks* ~q",
        ),
        (WELL._replace(options={"slowlog-log-slower-than": "-1"}), "note", "slowlog-log-slower-than"),
        (WELL._replace(slow=[SlowCommand(NOW, 0.2, "KEYS", "")]), "warning", "SLOWLOG"),
    ],
)
def test_fault_has_its_advice(report, level, remedy):
    first, *others = advice(report)
    assert first.level == level
    assert remedy in first.remedy
    assert [each.remedy for each in others] == (["CONFIG REWRITE"] if first.remedy.startswith(COMMANDS) else [])


def test_command_that_several_components_lack_is_one_advice():
    missing = [MissingRights(name, "", ("zadd",)) for name in ("locks", "queues")]
    first, note = advice(WELL._replace(missing=[*missing, MissingRights("search", "", ("get",))]))[::2]
    assert "of locks, queues, so some" in first.message
    assert (first.remedy, note.remedy) == ("ACL SETUSER site +zadd", "CONFIG REWRITE")


@pytest.mark.parametrize("used", ["950000000", "1000000001"])
@pytest.mark.parametrize(("policy", "effect"), [("noeviction", "refuses writes"), ("allkeys-lru", "evicts keys")])
def test_memory_that_runs_out_has_the_effect_of_the_policy(policy, effect, used):
    messages = [str(each.message) for each in advice(given(maxmemory_policy=policy, used_memory=used))]
    (full,) = [message for message in messages if "of maxmemory is used" in message]
    assert [word for word in ("refuses writes", "evicts keys") if word in full] == [effect]


@pytest.mark.parametrize(
    "report",
    [
        WELL._replace(clock=1.5, clock_error=0.6),
        WELL._replace(slow=[SlowCommand(NOW - timedelta(hours=2), 9.0, "KEYS", "")]),
        WELL._replace(slow=[SlowCommand(NOW, 0.05, "KEYS", "")]),
        given(slave0=REPLICA),
        WELL._replace(info={}, options={}, refused=()),
    ],
)
def test_what_is_well_has_none(report):
    assert advice(report) == []


def test_errors_come_first():
    levels = [each.level for each in advice(given(maxmemory="0", aof_enabled="0", role="slave"))]
    assert levels == ["error", "warning", "note", "note"]


def test_remedies_mend_a_real_server(own_kit):
    own_kit.client.config_set("maxmemory-policy", "allkeys-lru")
    evict_a_key(own_kit.client)
    own_kit.client.config_set("slowlog-log-slower-than", -1)
    *found, last = advice(server_reports()[0])
    assert "keys were evicted" in "".join(each.message for each in found)
    for each in found:
        assert each.remedy.startswith("CONFIG "), each
        own_kit.client.execute_command(*each.remedy.split())
    assert last.remedy == "Write them into the server's configuration."  # it has no file
    assert wait_for(lambda: not advice(server_reports()[0]))


def evict_a_key(client):
    client.set("evicted", "x" * 100_000)
    client.config_set("maxmemory", client.info("memory")["used_memory"] - 50_000)
    client.config_set("maxmemory", 0)
