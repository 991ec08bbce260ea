"""``manage.py rk_pageviews``."""

import csv
import io
import json
import re
from datetime import timedelta
from functools import partial

import pytest

from redis_kit.pageviews import PageViews, batch, periods
from redis_kit.pageviews.database.models import PageViewSnapshot

AWAY = {"URL": "redis://127.0.0.1:1/0"}


@pytest.fixture
def rk_pageviews(shell):
    return partial(shell, "rk_pageviews")


@pytest.fixture
def viewed(kit):
    """Views of yesterday and of today."""
    moment = periods.now()
    for ago, page, key, visitor in (
        (1, "post", 1, "anna"),
        (0, "post", 1, "ben"),
        (0, "post", 2, "ben"),
        (0, "a\tb", None, ""),
    ):
        PageViews(page, key).add(visitor, at=moment - timedelta(ago))
    return moment.date()


@pytest.mark.django_db
def test_snapshot_says_what_it_did_and_can_be_repeated(viewed, rk_pageviews):
    code, output, errors = rk_pageviews("snapshot")
    assert (code, errors) == (0, "")
    assert re.fullmatch(r"Created [3-9], updated 0, unchanged 0\.\n", output)  # 9 if a week and a month ended, too
    code, output, _ = rk_pageviews("snapshot", "--days", "400", "--json")
    assert (code, json.loads(output)["unchanged"] >= 3) == (0, True)
    assert PageViewSnapshot.objects.filter(period="day").count() == 3


def test_dropped_views_are_listed_by_day(kit, rk_pageviews):
    PageViews.site().run_flow(batch.dropped_today(5))
    today = periods.now().date()
    code, output, _ = rk_pageviews("dropped", "--start", str(today - timedelta(1)))
    assert (code, output) == (0, f"day,dropped\n{today - timedelta(1)},0\n{today},5\n")
    code, output, _ = rk_pageviews("dropped", "--start", str(today), "--json")
    assert (code, json.loads(output)) == (0, [{"day": str(today), "dropped": 5}])


@pytest.mark.django_db
def test_snapshot_without_views_is_done(kit, rk_pageviews):
    assert rk_pageviews("snapshot") == (0, "There are no views in these days.\n", "")
    code, output, _ = rk_pageviews("snapshot", "--json")
    assert (code, json.loads(output)["created"]) == (0, 0)


@pytest.mark.django_db
def test_export_is_csv_of_each_day_or_json(viewed, rk_pageviews):
    code, output, errors = rk_pageviews("export", "--page", "post", "--start", (viewed - timedelta(1)).isoformat())
    assert (code, errors) == (0, "")
    yesterday, today = csv.DictReader(io.StringIO(output))
    assert today == {"day": viewed.isoformat(), "views": "2", "visitors": "1", "bots": "0"}
    assert yesterday["views"] == "1"
    same = rk_pageviews(
        "export", "--page", "post", "--since", (viewed - timedelta(1)).isoformat(), "--until", str(viewed)
    )
    assert same[1] == output
    days = json.loads(rk_pageviews("export", "--page", "post", "--key", "2", "--json")[1])
    assert (len(days), days[-1]) == (30, {"day": viewed.isoformat(), "views": 1, "visitors": 1, "bots": 0})


@pytest.mark.django_db
def test_export_has_days_of_snapshots_after_redis_was_wiped(viewed, kit, rk_pageviews):
    whole = rk_pageviews("export", "--end", (viewed - timedelta(1)).isoformat())[1]
    rk_pageviews("snapshot")
    kit.client.delete(*kit.keys())
    assert rk_pageviews("export", "--end", (viewed - timedelta(1)).isoformat())[1] == whole


def test_top_is_a_table_of_pages_or_objects(viewed, rk_pageviews):
    code, output, _ = rk_pageviews("top")
    assert code == 0
    assert [line.split() for line in output.splitlines()][:2] == [["PAGE", "VIEWS"], ["post", "2"]]
    assert "\t" not in output
    assert json.loads(rk_pageviews("top", "--page", "post", "--period", "month", "--json")[1])[0]["name"] in ("1", "2")


def test_top_without_views_is_one(kit, rk_pageviews):
    assert rk_pageviews("top")[0] == 1
    assert rk_pageviews("top", "--json")[:2] == (1, "[]\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "required: ACTION"),
        (["show"], "invalid choice"),
        (["top", "-n", "0"], "'0' is not a whole number between 1 and 1000"),
        (["top", "--start", "2024-01-01"], "unrecognized arguments: --start"),
        (["snapshot", "-n", "5"], "unrecognized arguments: -n"),
        (["snapshot", "--days", "401"], "'401' is not a whole number between 1 and 400"),
        (["export", "--start", "yesterday"], "'yesterday' is not a day such as 2026-11-20"),
        (["export", "--start", "2024-01-02", "--end", "2024-01-01"], "a range has 1 to 366 days"),
        (["export", "--key", "1"], "--key needs --page"),
        (["export", "--page", "x" * 600], "at most 512 are allowed"),
    ],
)
def test_wrong_arguments_end_with_two_and_are_named(kit, rk_pageviews, arguments, error):
    code, output, errors = rk_pageviews(*arguments)
    assert (code, output) == (2, "")
    assert error in errors


def test_redis_unavailable_ends_with_69(settings, rk_pageviews):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": AWAY}}
    assert rk_pageviews("top")[0] == 69
