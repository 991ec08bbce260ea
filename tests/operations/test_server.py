"""The servers: the report of each, the advice about it, and faults that were made."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.operations import advice, component_memory, find_keys, server_reports
from redis_kit.operations import server as rules
from redis_kit.operations.server import MissingRights, ServerReport, SlowCommand, sentinel_advice
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN
from tests.fixtures.kit import Kit
from tests.fixtures.process import client, wait_for
from tests.operations.conftest import fill


def test_report_has_the_state_of_the_server(filled, trips):
    trips.clear()
    (report,) = server_reports()
    assert len(trips) == 2
    assert report.version.startswith("9.")
    assert report.kind == "valkey"
    assert report.user == "default"
    assert report.refused == ()
    assert report.missing == []
    assert report.keys == filled.client.dbsize()
    assert abs(report.clock) <= report.clock_error + 0.5
    by_component = {row.component: row for row in report.memory}
    assert by_component["queues"].keys == len([key for key in filled.keys() if ":{queues" in key])
    assert by_component["queues"].size > 20 * 500
    assert by_component["locks"].size > 0


def test_report_writes_nothing_and_reads_no_value(filled, commands):
    before = filled.client.info("persistence")["rdb_changes_since_last_save"]
    with commands(filled) as sent:
        server_reports()
    assert set(sent) <= {"TIME", "INFO", "DBSIZE", "CONFIG", "SLOWLOG", "ACL", "SCAN", "MEMORY", "EVAL"}
    assert filled.client.info("persistence")["rdb_changes_since_last_save"] == before


def test_report_of_each_kind_of_server(any_kit):
    reports = server_reports()
    assert len(reports) == (3 if "CLUSTER" in any_kit.server.connection else 1)
    assert all(report.info["role"] == "master" and report.scripts_have_time for report in reports)
    assert any(report.replicas() for report in reports) == ("SENTINELS" in any_kit.server.connection)


def test_memory_of_many_keys_is_estimated(own_kit):
    pipe = own_kit.client.pipeline()
    for number in range(30_000):
        pipe.set(f"{own_kit.prefix}:{{locks:{number}}}:holder", "x" * 200)
    pipe.execute()
    (row,) = server_reports()[0].memory
    assert row.share < 1
    true = own_kit.client.memory_usage(f"{own_kit.prefix}:{{locks:1}}:holder") * 30_000
    assert 0.9 * 30_000 < row.keys < 1.1 * 30_000
    assert 0.9 * true < row.size < 1.1 * true


def test_slow_commands_are_named_without_their_values(own_kit):
    own_kit.client.config_set("slowlog-log-slower-than", 0)
    fill(own_kit)
    own_kit.client.config_set("slowlog-log-slower-than", -1)
    entries = server_reports()[0].slow
    assert any(entry.command == "queues.engine.put (script)" for entry in entries), entries
    assert all(entry.key == "" or entry.key.startswith(f"{own_kit.prefix}:") for entry in entries)
    assert "secret" not in repr(entries)


def test_user_with_few_rights_gets_a_report_of_the_rest(own_kit):
    own_kit.client.execute_command("ACL", "SETUSER", "site", "on", ">secret", f"~{own_kit.prefix}:*", "+time", "+eval")
    url = own_kit.url.replace("redis://", "redis://site:secret@")
    own_kit.connect({"URL": url})
    (report,) = server_reports()
    assert report.refused == ("info", "dbsize", "config|get", "slowlog|get", "acl|whoami", "scan")
    assert report.scripts_have_time
    assert (report.version, report.memory, report.keys, report.user) == ("", [], None, "site")


@pytest.mark.parametrize("kind", ["valkey", "debian_redis", "cluster"])
def test_missing_rights_of_components_are_named(request, kit, kind):
    kit.server = request.getfixturevalue(kind)
    nodes = [node.client() for node in getattr(kit.server, "nodes", [kit.server])]
    rules = [f"~{kit.prefix}:{{locks*", f"~{kit.prefix}:{{signins*", "+@all"]
    rules += ["-blpop", "-evalsha", "-zadd", "-type", "-asking"]
    for node in nodes:
        node.execute_command("ACL", "SETUSER", kit.prefix, "on", ">secret", *rules)
    kit.connect({**kit.server.connection, "USERNAME": kit.prefix, "PASSWORD": "secret"})
    missing = server_reports()[-1].missing
    for node in nodes:
        node.execute_command("ACL", "DELUSER", kit.prefix)
        node.close()
    of_all = ("evalsha", "type", "asking") if kind == "cluster" else ("evalsha", "type")
    assert missing == [
        MissingRights("locks", "", (*of_all, "blpop", "zadd")),
        *(MissingRights(name, f"~{kit.prefix}:{{{name}*", ()) for name in ("throttling", "queues", "pageviews")),
        MissingRights("signins", "", (*of_all, "zadd")),
        *(MissingRights(name, f"~{kit.prefix}:{{{name}*", ()) for name in ("bloom", "autocomplete", "search")),
        MissingRights("mailbox", f"~{kit.prefix}:{{mailbox* &{kit.prefix}:{{mailbox*", ()),
        MissingRights("logs", f"~{kit.prefix}:{{logs*", ()),
    ]


def test_unavailable_server_is_named(own_kit):
    own_kit.server.stop()
    with pytest.raises(RedisUnavailable) as raised:
        server_reports()
    assert raised.value.using == "default"


@pytest.fixture
def cluster_kit(kit, cluster):
    """The kit on a Cluster."""
    kit.server = cluster
    kit.connect(cluster.connection)
    return kit


@pytest.fixture
def stray(cluster_kit):
    """A node of a Cluster that has a key of a slot which it does not own, as after its return from an old snapshot."""
    key = f"{cluster_kit.prefix}:{{locks:a}}:holder"
    owner = cluster_kit.server.owner(key)
    node = next(node for node in cluster_kit.server.nodes if node is not owner)
    with node.client() as client:
        slot = client.cluster("KEYSLOT", key)
        client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", cluster_kit.server.id(owner))
        client.execute_command("ASKING")
        client.set(key, "x")
        client.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")
        yield node
        client.flushdb()


def test_keys_of_slots_that_a_node_does_not_own_are_advised(stray, shell):
    found = {report.where: report.moved for report in server_reports()}
    assert [where for where, moved in found.items() if moved] == [f"redis://127.0.0.1:{stray.port}"]
    assert [(row.keys, row.size) for row in component_memory() if row.component == "locks"] == [(1, 0)]
    page = find_keys("holder")
    keys = [*page.keys]
    while page.cursor:
        page = find_keys("holder", cursor=page.cursor)
        keys += page.keys
    assert [(key.component, key.size) for key in keys] == [("locks", None)]
    assert shell("rk_keys")[0] == 0
    code, output, _errors = shell("rk_doctor")
    assert code == 1
    assert "WARNING: The node has at least 1 key" in output
    assert f"-> redis-cli --cluster check 127.0.0.1:{stray.port}\n" in output


def test_node_of_a_cluster_that_does_not_answer_is_a_report_of_its_own(cluster_kit, cluster, shell):
    cluster_kit.client.mset_nonatomic({f"{cluster_kit.prefix}:{{locks:{name}}}:holder": "x" for name in "abcdef"})
    server_reports()  # and the nodes are known
    cluster.nodes[1].freeze()
    wait_for(lambda: not cluster.is_whole(cluster.nodes[0]))  # which refuses its own keys now
    reports = server_reports()
    code, output, _errors = shell("rk_doctor")
    cluster.nodes[1].thaw()
    wait_for(lambda: all(map(cluster.is_whole, cluster.nodes)))
    where = f"redis://127.0.0.1:{cluster.nodes[1].port}"
    (down,) = [report for report in reports if report.error]
    assert (down.where, down.version) == (where, "")
    assert [each.level for each in advice(down)] == ["error"]
    assert code == 69
    assert output.count("default: valkey 9.") == 2
    assert "The user may not" not in output
    assert f"default: {where}\n  ERROR: The server does not answer: Redis can't be reached" in output


def test_node_of_a_cluster_in_place_of_the_cluster_is_advised(cluster_kit, shell):
    cluster_kit.connect({"URL": cluster_kit.url})
    cluster_kit.client.mset_nonatomic({f"{cluster_kit.prefix}:{{locks:{name}}}:holder": "x" for name in "abcdef"})
    code, output, _errors = shell("rk_doctor")
    assert code == 1
    assert "ERROR: The server is a node of a Cluster" in output
    assert "-> In REDIS_KIT['CONNECTIONS'], write 'CLUSTER' in place of 'URL'." in output


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


def found():
    """Return the remedies by message of the advice about all servers."""
    return {each.message: each.remedy for report in server_reports() for each in advice(report)}


def remedy_of(text):
    return next((remedy for message, remedy in found().items() if text in message), None)


def test_settings_that_lose_data_are_named_in_both_places(own_kit, boss, shell, monkeypatch):
    client = own_kit.client
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 4 * 2**20)
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.config_set("slowlog-log-slower-than", 1000)
    monkeypatch.setattr(rules, "SLOW", 0.02)  # seconds: the loop below takes longer on any machine
    for number in range(6000):
        client.set(f"{own_kit.prefix}:{number}", "x" * 1000)
    client.eval("for i = 1, 2e7 do local a = i end return 1", 0)
    expected = {
        "CONFIG SET maxmemory-policy noeviction",
        "CONFIG SET appendonly yes",
        "SLOWLOG GET 128 shows what was slow.",
    }
    code, output, _ = shell("rk_doctor")
    assert code == 1
    cells = [cell.words for cell in page(boss.get(f"{ADMIN}server/")).find("td")]
    for remedy in expected:
        assert f"    -> {remedy}" in output.splitlines()
        assert remedy in cells
    for words in ("keys were evicted", "EVAL kept the server busy for", "% of maxmemory is used"):
        assert words in output
        assert any(words in cell for cell in cells)


def test_frozen_and_lost_replicas_are_named(own_kit, make_server, monkeypatch):
    monkeypatch.setattr(rules, "LAG", 1)
    primary = make_server(tcp=True)
    own_kit.connect(primary.connection)
    replica = make_server(tcp=True, extra_args=("--replicaof", "127.0.0.1", str(primary.port)))
    wait_for(lambda: any(each.get("state") == "online" for each in server_reports()[0].replicas()))
    assert not remedy_of("lags by")
    assert remedy_of("A primary that is cut off") == "CONFIG SET min-replicas-to-write 1"
    replica.freeze()
    wait_for(lambda: remedy_of(f"The replica 127.0.0.1:{replica.port} lags by"))
    replica.thaw()
    primary.stop()
    own_kit.connect(replica.connection)
    wait_for(lambda: remedy_of("The replica has lost its primary"))
    assert "SENTINELS" in remedy_of("The connection leads to a replica")


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_clock_that_differs_is_named(clock_kit, jump, seconds, shell):
    jump(seconds)
    (message,) = [text for text in found() if "The server's clock differs" in text]
    assert abs(float(re.search(r"by (-?[\d.]+) s", message)[1]) - seconds) < 10
    assert "    -> Run chronyc tracking on both machines." in shell("rk_doctor")[1].splitlines()


def test_rights_that_are_missing_are_named_and_the_remedies_mend_that(own_kit):
    client = own_kit.client
    client.execute_command(
        "ACL", "SETUSER", "site", "on", ">secret", f"~{own_kit.prefix}:{{locks*", "+@all", "-evalsha", "-info"
    )
    own_kit.connect({**own_kit.server.connection, "USERNAME": "site", "PASSWORD": "secret"})
    remedies = [remedy for remedy in found().values() if remedy.startswith("ACL SETUSER site ")]
    assert len(remedies) >= 3
    for remedy in remedies:
        client.execute_command(*remedy.split())
    assert not [remedy for remedy in found().values() if remedy.startswith("ACL SETUSER")]


@pytest.fixture
def watched(sentinel, settings):
    """The kit on a service of Sentinels."""
    kit = Kit(sentinel, settings)
    yield kit
    kit.close()


def entry(watched, **changes):
    watched.connect({**watched.server.connection, **changes})


def test_complete_group_needs_no_advice(watched):
    assert sentinel_advice("default") == []


def test_sentinel_that_does_not_answer_is_named(watched):
    entry(watched, SENTINELS=[*watched.server.connection["SENTINELS"], ["127.0.0.1", 1]])
    (only,) = sentinel_advice("default")
    assert only.level == "warning"
    assert "127.0.0.1:1" in only.message


def test_sentinel_that_refuses_the_password_is_named_with_its_reason(watched):
    entry(watched, SENTINEL_KWARGS={"username": "nobody", "password": "wrong"})
    with pytest.raises(RedisUnavailable, match=r"answers: 127\.0\.0\.1:\d+ \(AuthenticationError: invalid username"):
        sentinel_advice("default")


def test_sentinel_that_refuses_the_command_is_named_with_the_rule(watched):
    host, port = watched.server.connection["SENTINELS"][0]
    with client(f"redis://{host}:{port}") as one:
        one.execute_command("ACL", "SETUSER", "default", "-sentinel|masters")
        (refusing,) = sentinel_advice("default")
        one.execute_command("ACL", "SETUSER", "default", "+sentinel|masters")
    assert f"refuse the command: {host}:{port} (" in refusing.message
    assert refusing.remedy == "ACL SETUSER default +ping +sentinel|masters"


def test_unknown_service_is_an_error(watched):
    entry(watched, SERVICE="orders")
    assert [each.level for each in sentinel_advice("default")] == ["error"]


def test_no_sentinel_that_answers_is_an_outage(watched):
    entry(watched, SENTINELS=[["127.0.0.1", 1]])
    with pytest.raises(RedisUnavailable, match="None of the Sentinels"):
        sentinel_advice("default")


def test_plain_server_has_none(kit):
    assert sentinel_advice("default") == []
