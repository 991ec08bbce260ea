"""The command: its output, its exit codes, and the rebuild of a model's index."""

import json

import pytest

from redis_kit.autocomplete import Autocomplete, ModelAutocomplete
from redis_kit.core.indexes import model_index
from tests.app.models import Account

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def accounts(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    return ModelAutocomplete(Account, ["name"])


def test_indexes_are_listed_by_name(shell):
    assert shell("rk_autocomplete", "list")[1].split()[-5:] == ["app.account", "default", "0", "0", "no"]
    Autocomplete("b").add(1, "Anna")
    Autocomplete("a", "x").add_many((id, "Anna") for id in range(100))
    code, out, _ = shell("rk_autocomplete", "list")
    assert code == 0
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["a", "default", "100", "1", "-"],
        ["b", "default", "1", "1", "-"],
    ]
    assert json.loads(shell("rk_autocomplete", "list", "--json")[1])[1]["entries"] == 100


def test_index_is_cleared(shell):
    Autocomplete("b").add(1, "Anna")
    assert shell("rk_autocomplete", "clear", "b", "--no-input")[0] == 0
    assert Autocomplete("b").info() is None
    code, _, errors = shell("rk_autocomplete", "clear", "b", "--no-input")
    assert (code, "b does not exist" in errors) == (1, True)


def test_index_of_a_model_is_rebuilt(shell, accounts):
    Account.objects.create(name="Anna")
    code, out, _ = shell("rk_autocomplete", "rebuild", accounts.name.upper(), "--json")
    assert (code, json.loads(out)) == (0, {"name": accounts.name, "values": 1})
    assert shell("rk_autocomplete", "list")[1].split()[-1] == "yes"


def test_unknown_model_and_running_rebuild_have_exit_code_1(kit, shell, accounts):
    code, _, errors = shell("rk_autocomplete", "rebuild", "app.Accounts")
    assert code == 1
    assert "No model has the ModelAutocomplete" in errors
    kit.client.set(accounts.generations.lease, "another", ex=60)
    assert shell("rk_autocomplete", "rebuild", accounts.name)[0] == 1
