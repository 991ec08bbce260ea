"""The command: its output, its exit codes, and the rebuild of a model's filter."""

import json

import pytest

from redis_kit.bloom import BloomFilter, ModelFilter
from redis_kit.core.indexes import model_index
from tests.app.models import Account

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def accounts(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    return ModelFilter(Account, capacity=1000)


def test_filters_are_listed_by_name(shell, accounts, monkeypatch):
    assert (
        shell("rk_bloom", "list")[1].split()[-8:]
        == [accounts.name, "default", "0", "0%", "0", "0", "0", "B", "not", "built"][-8:]
    )
    monkeypatch.setattr(model_index, "_indexes", [])
    assert shell("rk_bloom", "list")[:2] == (0, "There are no filters.\n")
    BloomFilter("b", 1000).add(1)
    BloomFilter("a", 1000).add_many(range(100))
    code, out, _ = shell("rk_bloom", "list")
    assert code == 0
    rows = [line.split() for line in out.splitlines()[1:]]
    assert [(*row[:4], row[-1]) for row in rows] == [
        ("a", "default", "100", "10%", "-"),
        ("b", "default", "1", "0%", "-"),
    ]
    assert json.loads(shell("rk_bloom", "list", "--json")[1])[0]["items"] == 100
    assert shell("rk_bloom", "list", "--limit", "1")[1].endswith("1 more; --limit shows them.\n")


@pytest.mark.parametrize("name", ["app.Account.pk", "app.account.id"])
def test_filter_of_a_model_is_rebuilt(shell, accounts, name):
    Account.objects.create(name="a")
    label = accounts.name.replace("app.account", accounts.model._meta.label_lower)
    name = name.lower().replace("app.account", accounts.model._meta.label_lower)
    code, out, _ = shell("rk_bloom", "rebuild", name, "--json")
    assert (code, json.loads(out)) == (0, {"name": label, "values": 1})
    assert not accounts.may_exist(10**6)


def test_unknown_model_and_running_rebuild_have_exit_code_1(kit, shell, accounts):
    code, _, errors = shell("rk_bloom", "rebuild", "app.Account.other")
    assert code == 1
    assert "No model has the ModelFilter" in errors
    kit.client.set(accounts.filter.key("lease"), "another", ex=60)
    assert shell("rk_bloom", "rebuild", accounts.name)[0] == 1


def test_filter_is_cleared_after_a_confirmation(shell, accounts):
    BloomFilter("seen", 1000).add_many(range(5))
    code, out, errors = shell("rk_bloom", "clear", "seen", typed="no\n")
    assert code == 1
    assert BloomFilter("seen", 1000).info().items == 5
    assert shell("rk_bloom", "clear", "seen", typed="seen\n")[0] == 0
    assert BloomFilter("seen", 1000).info() is None
    code, _, errors = shell("rk_bloom", "clear", "seen", "--noinput")
    assert (code, "seen does not exist" in errors) == (1, True)
    accounts.rebuild()
    code, out, _ = shell("rk_bloom", "clear", accounts.name, "--noinput", "--json")
    assert (code, json.loads(out)) == (0, {"name": accounts.name, "entries": 0})
    assert accounts.filter.info() is None
    accounts.rebuild()
    code, out, _ = shell("rk_bloom", "clear", accounts.name.upper(), "--noinput", "--json")
    assert (code, json.loads(out)["name"]) == (0, accounts.name)
    assert accounts.filter.info() is None


def test_filter_with_exactly_the_name_is_cleared(shell, accounts):
    accounts.rebuild()
    BloomFilter(accounts.name.upper(), 1000).add(1)
    assert shell("rk_bloom", "clear", accounts.name.upper(), "--noinput")[0] == 0
    assert accounts.filter.info().complete


def test_more_filters_than_are_listed_are_counted(shell, accounts, monkeypatch):
    monkeypatch.setattr("redis_kit.core.indexes.inventory.MOST", 3)
    monkeypatch.setattr("redis_kit.core.indexes.command.MOST", 3)
    for number in range(5):
        BloomFilter(f"f{number}", 1000).add(1)
    assert shell("rk_bloom", "list", "--limit", "2")[1].endswith("3 more; --limit shows at most 3.\n")


def test_all_connections_are_listed(kit, shell, accounts, make_server):
    second = make_server()
    connections = kit.settings.REDIS_KIT["CONNECTIONS"]
    kit.options(CONNECTIONS={**connections, "second": second.connection, "down": {"URL": "redis://127.0.0.1:1/0"}})
    BloomFilter("both", 1000).add(1)
    BloomFilter("both", 1000, using="second").add_many([1, 2])
    _code, out, _ = shell("rk_bloom", "list")
    assert [line.split()[:3] for line in out.splitlines()[2:]] == [["both", "default", "1"], ["both", "second", "2"]]
    code, _, errors = shell("rk_bloom", "clear", "both", "--noinput")
    assert (code, "several connections: default, second" in errors) == (1, True)
    assert shell("rk_bloom", "clear", "both", "--using", "second", "--noinput")[0] == 0
    assert "both" in shell("rk_bloom", "list", "--using", "default")[1]


def test_model_filter_is_rebuilt_on_its_own_connection(kit, shell, monkeypatch, make_server):
    second = make_server()
    kit.options(CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "second": second.connection})
    names = ModelFilter(Account, "name", capacity=1000, using="second")
    assert shell("rk_bloom", "rebuild", names.name)[0] == 0
    assert names.filter.info().complete
    assert [key for key in kit.keys() if ":bits:" in key] == []
