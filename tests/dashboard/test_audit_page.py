"""The page about the actions of users."""

import pytest
from django.contrib.admin.models import LogEntry

from tests.dashboard.support import vault
from tests.dashboard.support.html import page, rows
from tests.fixtures.dashboard import ADMIN

PAGE = f"{ADMIN}audit/"
TITLE = "Actions of users, the latest first"


@pytest.fixture(autouse=True)
def boxes(kit):
    kit.options(EXTRA_COMPONENTS=["tests.dashboard.support.vault.Vault"])
    vault.BOXES.clear()
    vault.BOXES["gold"] = "bars"


def entries(client, **asked):
    return rows(page(client.get(PAGE, asked)), TITLE)


def test_entries_of_all_users_are_listed_the_latest_first(boss, signed_in):
    assert "Nobody has pressed a button." in boss.get(PAGE).content.decode()
    for size, reason in (("7", ""), ("9", "it <b>hangs</b>")):
        boss.post(f"{ADMIN}vault/do/resize/", {"value": "gold", "confirmed": "1", "wants": size, "reason": reason})
    latest, first = entries(boss)
    assert (latest["User"], latest["Page"]) == (str(LogEntry.objects.latest("pk").user), "Vault")
    assert "Reason: it <b>hangs</b>" in latest["Action"]
    assert "Resize: gold" in first["Action"]
    assert [row["Action"] for row in entries(boss, text="HANGS")] == [latest["Action"]]
    assert "No entry has this text." in boss.get(PAGE, {"text": "silver"}).content.decode()
    assert signed_in("view_dashboard").get(PAGE).status_code == 403


def test_many_entries_have_pages(boss):
    boss.post(f"{ADMIN}vault/do/resize/", {"value": "gold", "confirmed": "1", "wants": "1"})
    (entry,) = LogEntry.objects.all()
    for _number in range(100):
        entry.pk = None
        entry.save()
    assert (len(entries(boss)), len(entries(boss, page="2"))) == (100, 1)
    assert entries(boss, page="3") == entries(boss, page="2")
    assert len(entries(boss, text="gold", page="9")) == 1
    links = [one.attributes["href"] for one in page(boss.get(PAGE, {"text": "gold"})).find("a") if "page=2" in str(one)]
    assert all("text=gold" in link for link in links)
    assert links
    LogEntry.objects.exclude(pk=LogEntry.objects.latest("pk").pk).delete()
    assert len(entries(boss, page="2")) == 1
