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


def test_filters_are_listed_by_name(shell):
    assert shell("rk_bloom", "list")[:2] == (0, "There are no filters.\n")
    BloomFilter("b", 1000).add(1)
    BloomFilter("a", 1000).add_many(range(100))
    code, out, _ = shell("rk_bloom", "list")
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()[1:]] == [["a", "100", "10%"], ["b", "1", "0%"]]
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
