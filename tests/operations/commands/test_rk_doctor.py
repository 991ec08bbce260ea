"""``rk_doctor``, run as from a shell."""

import json

import pytest
from django.utils import translation

from redis_kit.core import connections
from redis_kit.core.errors import PermissionDenied
from redis_kit.locks import Lock
from tests.fixtures.kit import Kit


@pytest.fixture
def well(own_kit):
    """A server without a fault."""
    own_kit.client.config_set("appendonly", "yes")
    own_kit.client.config_set("maxmemory", "100mb")
    return own_kit


def test_good_server_exits_with_0(well, shell):
    code, output, errors = shell("rk_doctor")
    assert (code, errors) == (0, "")
    assert output.startswith("default: valkey 9.")
    assert "Nothing to improve was found." in output


def test_notes_do_not_change_the_exit_code(well, shell):
    well.client.config_set("maxmemory", 0)
    code, output, _errors = shell("rk_doctor")
    assert code == 0
    assert "NOTE: maxmemory is not set" in output


def test_advice_exits_with_1_and_says_what_to_type(well, shell):
    well.client.config_set("maxmemory-policy", "allkeys-lru")
    code, output, _errors = shell("rk_doctor")
    assert code == 1
    assert "    -> CONFIG SET maxmemory-policy noeviction" in output.splitlines()


def test_all_is_english(well, shell):
    well.client.config_set("maxmemory-policy", "allkeys-lru")
    well.client.set("rk:x", "")
    with translation.override("zh-hans"):
        _code, output, _errors = shell("rk_doctor")
    assert output.isascii()
    assert ", 1 key in all" in output


def test_unreachable_server_exits_with_69_and_the_others_are_shown(well, shell, settings):
    gone = {"URL": "redis://user:password@127.0.0.1:1/0", "TEST": True}
    well.options(CONNECTIONS={**settings.REDIS_KIT["CONNECTIONS"], "gone": gone})
    code, output, _errors = shell("rk_doctor")
    assert code == 69
    assert "default: valkey 9." in output
    assert "gone: Redis can't be reached" in output
    assert "password" not in output
    assert shell("rk_doctor", "--using", "default")[0] == 0


def test_json_has_all_of_it(well, shell):
    well.client.config_set("appendonly", "no")
    code, output, _errors = shell("rk_doctor", "--json")
    (connection,) = json.loads(output)
    (server,) = connection["servers"]
    assert code == 1
    assert server["kind"] == "valkey"
    assert [each["level"] for each in server["advice"]] == ["warning", "note"]
    assert server["advice"][0]["remedy"] == "CONFIG SET appendonly yes"


def test_json_of_an_unreachable_server_has_the_error(well, shell):
    well.server.stop()
    code, output, _errors = shell("rk_doctor", "--json")
    assert code == 69
    assert "can't be reached" in json.loads(output)[0]["error"]


def test_wrong_settings_exit_with_78(kit, shell):
    kit.options(OPERATIONS={"METRICS_TOKN": "x"})
    code, _output, errors = shell("rk_doctor")
    assert code == 78
    assert "Did you mean 'METRICS_TOKEN'?" in errors


def test_primary_of_sentinels_is_named(sentinel, settings, shell):
    kit = Kit(sentinel, settings)
    _code, output, _errors = shell("rk_doctor")
    assert f", primary at 127.0.0.1:{sentinel.primary.port}, up " in output
    kit.client.execute_command("ACL", "SETUSER", "few", "on", "nopass", "~*", "+info")
    kit.connect({**sentinel.connection, "USERNAME": "few", "PASSWORD": "any"})
    with pytest.raises(PermissionDenied, match=f", last at 127.0.0.1:{sentinel.primary.port}\\).*rk_doctor"):
        Lock("a", timeout=1).acquire()
    kit.client.execute_command("ACL", "DELUSER", "few")
    kit.close()


def test_each_kind_of_server_is_examined(any_kit, shell):
    connections.close()
    code, output, _errors = shell("rk_doctor")
    assert code == 1
    assert output.count("default: ") == (3 if "CLUSTER" in any_kit.server.connection else 1)
