import itertools
from datetime import date, timedelta

import pytest
from django.utils import translation

from redis_kit.core.panels import Downloads, Figure, HeatMap, LineChart, Shade, Table, Viewer
from redis_kit.signins.activity import ActiveDay, Cohort
from redis_kit.signins.dashboard import panel
from redis_kit.signins.dashboard.panel import SignInsPanel
from redis_kit.signins.days import today
from tests.app.models import User
from tests.signins.people import saved
from tests.signins.support.crowd import Crowd


def shown(may=True, **asked):
    page = SignInsPanel()
    page.viewer = Viewer(lambda permission: may, asked)
    return list(page.content())


def only(kind, content):
    return [piece for piece in content if isinstance(piece, kind)]


@pytest.mark.parametrize(("language", "first"), [("de", "Mo"), ("en", "Sun")])
def test_year_has_53_weeks_that_begin_as_the_language_wants(language, first):
    last = date(2026, 11, 23)
    with translation.override(language):
        chart = panel.year_of_days("Days", last, {last: 3})
        assert str(chart.rows[0]) == first
        assert len(chart.columns) == 53
        assert [cell.value for cell in chart.cells[-2:]] == [0, 3]
        assert {(cell.row, cell.column) for cell in chart.cells} == {
            (at % 7, at // 7) for at in range(len(chart.cells))
        }
        assert 52 * 7 < len(chart.cells) <= 53 * 7


def figures_of(content):
    return {str(figure.label): figure.value for figure in only(Figure, content)}


def test_page_of_a_model_is_that_of_sets_in_three_round_trips(kit, trips, monkeypatch):
    crowd = Crowd(60, 40).sign_in()
    shown(may=False, model="app.User")  # loads the scripts
    monkeypatch.setattr(panel, "_joined", {})
    trips.clear()
    content = shown(may=False, model="app.User")
    assert len(trips) == 3
    figures = figures_of(content)
    assert figures["Signed in today"] == len(crowd.on(crowd.last))
    assert figures["In 7 days"] == len(crowd.on(crowd.last - timedelta(6), crowd.last))
    (lines,), (year,) = only(LineChart, content), only(HeatMap, content)
    assert [len(values) for _, values in lines.lines] == [28] * 3
    assert sum(cell.value for cell in year.cells) == sum(map(len, crowd.days.values()))
    cohorts, leaders = only(Table, content)
    assert sum(row[1] for row in cohorts.rows) == len(crowd.days)
    assert all(isinstance(cell, Shade) or cell == "" for row in cohorts.rows for cell in row[2:])
    assert len(leaders.rows) == 10
    (downloads,) = only(Downloads, content)
    assert [name for _, name in downloads.files] == ["active-users", "cohorts"]


def test_bitmaps_of_many_days_are_read_again_when_a_day_changed(kit, trips, monkeypatch):
    clock = itertools.count(0, 20).__next__  # seconds: a page looks once, and stores once more
    monkeypatch.setattr(panel, "monotonic", clock)
    crowd = Crowd(10, 40).sign_in()
    figures = figures_of(shown(may=False, model="app.User"))
    trips.clear()
    assert figures_of(shown(may=False, model="app.User")) == figures
    assert len(trips) == 1
    saved(11).sign_in(crowd.last)
    grown = figures_of(shown(may=False, model="app.User"))
    assert (grown["Signed in today"], grown["In 7 days"]) == (figures["Signed in today"] + 1, figures["In 7 days"])
    for _ in range(4):
        later = figures_of(shown(may=False, model="app.User"))
    assert later["In 7 days"] == figures["In 7 days"] + 1  # after a minute
    saved(12).sign_in(crowd.last - timedelta(1))
    assert figures_of(shown(may=False, model="app.User"))["In 7 days"] == figures["In 7 days"] + 2  # at once


def test_what_goes_on_is_marked(kit):
    last = date(2026, 11, 25)
    chart = panel.active_users("Users", [("Daily", [ActiveDay(last - timedelta(1), 3), ActiveDay(last, 2)])])
    assert chart.labels == ["November 24", "November 25*"]
    assert panel.year_of_days("Days", last, {}).cells[-1].name == "Nov. 25, 2026, so far"
    cohorts = [Cohort(date(2026, 11, 16), 4, [4, 2], True), Cohort(date(2026, 11, 23), 3, [3], True)]
    newest, older = panel.cohort_table("Cohorts", cohorts).rows
    assert (newest[0], newest[2]) == ("Nov. 23, 2026*", "")
    assert (older[0], older[2].value) == ("Nov. 16, 2026", "50 %*")
    done = Cohort(date(2026, 11, 16), 4, [4, 2], False)
    assert panel.cohort_table("Cohorts", [done]).rows[0][2].value == "50 %"


@pytest.mark.django_db
def test_page_of_a_user_is_one_round_trip(kit, trips):
    crowd = Crowd(5, 40).sign_in()
    trips.clear()
    content = shown(model="app.User", user=" 3 ")
    assert len(trips) == 1
    (year,) = only(HeatMap, content)
    assert {
        today() - timedelta(len(year.cells) - 1 - at) for at, cell in enumerate(year.cells) if cell.value
    } == crowd.days[3]
    assert [figure.value for figure in only(Figure, content)][2] == len(crowd.days[3])
    assert year.title == "Sign-ins of 3"
    User.objects.create(pk=3, username="ann")
    (year,) = only(HeatMap, shown(model="app.User", user="3"))
    assert year.title == "Sign-ins of ann (3)"


def test_days_of_a_user_need_the_permission_to_view_the_model(kit):
    saved(3).sign_in()
    (table,) = shown(may=False, model="app.User", user="3")
    assert str(table.empty) == "The days of one user need the permission to view user."
    *_, leaders = only(Table, shown(may=False, model="app.User"))
    assert leaders.rows == [("3", 1)]


@pytest.mark.django_db
def test_page_of_a_user_marks_days_that_were_made_up_and_not_frozen_ones(kit):
    user, last = saved(3), today()
    for ago in (6, 5, 3):
        user.sign_in(last - timedelta(ago))
    user.make_up_sign_in(last - timedelta(4))
    user.freeze_sign_ins(last - timedelta(2))
    (year,) = only(HeatMap, shown(model="app.User", user="3"))
    assert sum(cell.value for cell in year.cells) == 4


@pytest.mark.parametrize("user", ["4711", "<b>", "a" * 600])
def test_unknown_user_is_said(kit, user):
    (table,) = shown(model="app.User", user=user)
    assert "No user with this primary key" in str(table.empty)
