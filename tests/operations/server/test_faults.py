"""Faults of real servers: the command and the page name each, with what to type."""

import re

import pytest

from redis_kit.operations import advice, server_reports
from redis_kit.operations.server import advice as rules
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN
from tests.fixtures.process import wait_for


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
