"""The state of real servers."""

import pytest

from redis_kit.core.errors import RedisUnavailable
from redis_kit.operations import advice, component_memory, find_keys, server_reports
from redis_kit.operations.server.report import MissingRights
from tests.fixtures.process import wait_for
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
