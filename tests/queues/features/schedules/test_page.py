"""The page of schedules: the next day, the last ticks, and the buttons."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from redis_kit.core import component
from redis_kit.core.panels import MOST_ROWS, Viewer
from redis_kit.queues import Queue
from redis_kit.queues.features.schedules import inspection
from redis_kit.queues.features.schedules import store as store
from redis_kit.queues.features.schedules.definition import made
from redis_kit.queues.features.schedules.page import SchedulesPanel, figures
from redis_kit.queues.features.schedules.store import Schedules
from redis_kit.queues.models import Schedule
from redis_kit.testing.jobs import drain
from tests.dashboard.support.attacks import FEW, harmless_links, without_titles
from tests.dashboard.support.html import page, rows, said, whole_page
from tests.fixtures.dashboard import ADMIN, layout_problems
from tests.queues.support.scheduled import declared, due_now, overdue, scheduler, tick
from tests.queues.support.tasks import remember

PAGE = f"{ADMIN}schedule/"
URLS = {name: f"{PAGE}do/{name}/" for name in ("pause", "resume", "run_now")}
TASK = remember.module_path
COMING = "The next 24 hours: the first 3 ticks of each"


@pytest.fixture
def three(kit):
    """A schedule that ran, one at night, and one that is off."""
    declared(TASK, "hourly", every=3600, args=[7])
    declared(TASK, "nightly", cron="0 4 * * *", timezone="Europe/Berlin")
    declared(TASK, "off", every=60, enabled=False)
    worker = scheduler()
    tick(worker)
    due_now(kit, "hourly")
    tick(worker)
    drain()


def values(client):
    found = page(client.get(PAGE)).find("button")
    return {one.attributes["aria-label"]: one.attributes["value"] for one in found if one.attributes.get("value")}


def test_next_day_and_last_ticks_are_shown(three, boss):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    found = page(boss.get(PAGE))
    coming = [each["Schedule"].split(" ")[0] for each in rows(found, COMING)]
    assert (coming.count("hourly"), coming.count("nightly")) == (3, 1)
    by_name = {each[""].split(" ")[0]: each for each in rows(found, "Schedules by name")}
    assert list(by_name) == ["hourly", "nightly", "off"]
    assert by_name["hourly"]["When"] == "every 1 h"
    assert by_name["hourly"]["Outcome"] == "job added successful"
    assert by_name["hourly"]["Runs"] == "1 1 missed"
    assert by_name["nightly"]["When"] == "every day at 04:00 Europe/Berlin"
    assert (by_name["off"]["Next tick"], by_name["nightly"]["Last tick"]) == ("paused", "")
    figures = [each.words for each in found.find("dd")]
    assert figures[0] == "3"
    assert re.fullmatch(r"\d+ (s|min \d+ s)|1 h 0 min|\d+\.\d s|\d+ ms", figures[-1])


def test_schedule_that_can_not_run_says_why_and_is_overdue(kit, boss):
    declared("shop.tasks.nope", "stuck", every=3600)
    worker = scheduler()
    tick(worker)
    due_now(kit, "stuck")
    tick(worker)
    (row,) = rows(page(boss.get(PAGE)), "Schedules by name")
    assert row[""].startswith("stuck shop.tasks.nope unknown task 'shop.tasks.nope'")
    assert row["Next tick"] == "can't run"
    overdue(kit, "stuck", 120)
    shown = list(figures(inspection.listed("due")))
    labels = [str(figure.label) for figure in shown]
    assert labels == ["Schedules", "Next tick in", "Schedules that can't run", "Overdue by"]
    assert timedelta(minutes=2) <= shown[-1].value < timedelta(minutes=3)


def test_overdue_ticks_are_an_alarm_that_names_the_missing_worker(kit, boss):
    declared(TASK, "quick", every=5, args=[7])
    tick(scheduler())
    overdue(kit, "quick", 46)
    found = page(boss.get(PAGE))
    (row,) = rows(found, "Schedules by name")
    assert "overdue by " in row["Next tick"]
    assert all("overdue by " in each["In"] for each in rows(found, COMING))
    figure = list(figures(inspection.listed("due")))[-1]
    assert (figure.label, figure.hint, figure.alarm) == ("Overdue by", "No worker is running.", True)
    assert timedelta(seconds=46) <= figure.value < timedelta(seconds=60)


def test_pause_resume_and_run_now(three, boss, django_capture_on_commit_callbacks):
    labels = values(boss)
    assert {"Pause: hourly", "Run now: hourly", "Resume: off"} <= set(labels)
    assert "Pause: off" not in labels
    with django_capture_on_commit_callbacks(execute=True):
        response = boss.post(URLS["pause"], {"row": labels["Pause: hourly"]})
    assert said(response) == ["Paused: hourly."]
    tick(scheduler())
    assert "Resume: hourly" in values(boss)
    with django_capture_on_commit_callbacks(execute=True):
        assert said(boss.post(URLS["resume"], {"row": labels["Pause: hourly"]}))[-1] == "Resumed: hourly."
    response = boss.post(URLS["run_now"], {"row": labels["Run now: hourly"]})
    (job,) = Queue("default").peek()
    (link,) = [one for one in whole_page(boss.get(response.url)).find("a") if one.words.startswith("Added")]
    assert link.words == f"Added to default: job {job.id}."
    assert link.attributes["href"] == f"{ADMIN}queues/?queue=default&id={job.id}"
    assert "has not ended" in said(boss.post(URLS["run_now"], {"row": labels["Run now: hourly"]}))[-1]


@pytest.mark.parametrize("name", URLS)
def test_permission_token_and_post_are_required(three, boss, signed_in, name):
    given = {"row": "hourly", "confirmed": "1"}
    assert signed_in("view_dashboard").post(URLS[name], given).status_code == 403
    assert signed_in("superuser", enforce_csrf_checks=True).post(URLS[name], given).status_code == 403
    assert boss.get(URLS[name], given).status_code == 302
    assert not Schedule.objects.exists()
    assert values(signed_in("view_dashboard")) == {}


def test_hundred_times_the_schedules_take_three_round_trips_and_pages(three, boss, trips):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    schedules = Schedules("all")
    many = {f"s{number:05}": made(name="s", task=TASK, every=3600, args=[7]).stored() for number in range(1500)}
    schedules.run_flow(store.declare("v1", many))
    worker = scheduler()
    for _ in range(16):
        tick(worker)
    list(SchedulesPanel().content())
    trips.clear()
    list(SchedulesPanel().content())
    assert len(trips) == 3
    found = page(boss.get(PAGE, {"page": "16"}))
    assert [each[""].split(" ")[0] for each in rows(found, "Schedules by name")] == ["s01497", "s01498", "s01499"]
    coming = rows(found, COMING)
    assert len(coming) == MOST_ROWS
    found = page(boss.get(PAGE, {"name": "s012", "page": "1"}))
    names = [each[""].split(" ")[0] for each in rows(found, "Schedules by name")]
    assert names == [f"s012{number:02}" for number in range(100)]
    assert not found.find("nav", class_="rk-pages")
    found = page(boss.get(PAGE, {"name": "s0"}))
    assert f"?{urlencode({'name': 's0', 'page': 2})}" in found.find("a", rel="next")[0].attributes["href"]
    for text in ("zz", "a"):
        found = page(boss.get(PAGE, {"name": text}))
        assert "No name begins with this text." in [one.words for one in found.find("p")]
    panel = SchedulesPanel()
    panel.viewer = Viewer(asked={"page": "999999"})
    assert list(panel.content())


def test_empty_page_says_how_schedules_come(kit, boss):
    text = page(boss.get(PAGE)).find("main") or page(boss.get(PAGE)).elements
    assert any("There are no schedules." in each.words for each in text)


@pytest.mark.parametrize("attack", FEW)
def test_schedules_can_put_nothing_into_the_page(kit, signed_in, attack):
    client, schedules = signed_in("superuser"), Schedules("all")
    name = attack.replace("\0", "") or "x"
    schedules.run_flow(store.declare("v1", {name: made(name="x", task="t", every=5).stored(), "y": attack}))
    kit.client.hset(schedules.key("state"), name, '{"tick": 5, "outcome": "added"}')
    for response in (client.get(PAGE), client.get(ADMIN)):
        found = whole_page(response)
        assert harmless_links(found)
        shape = str(without_titles(found.shape))
        assert "onerror" not in shape
        assert "'b'" not in shape


@pytest.mark.once
def test_page_fits_wide_and_narrow_screens_light_and_dark(visit, monkeypatch, three):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)

    def look(browser):
        assert layout_problems(browser) == []

    visit(look, start=PAGE)
