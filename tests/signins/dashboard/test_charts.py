from datetime import date, timedelta

import pytest
from django.utils import translation

from redis_kit.core.panels import Downloads, Figure, HeatMap, LineChart, Shade, Table, Viewer
from redis_kit.signins.cohorts.counts import ActiveDay
from redis_kit.signins.cohorts.retention import Cohort
from redis_kit.signins.dashboard import charts
from redis_kit.signins.dashboard.panel import SignInsPanel
from redis_kit.signins.days import today
from tests.signins.people import saved
from tests.signins.support.crowd import Crowd


def shown(**asked):
    panel = SignInsPanel()
    panel.viewer = Viewer(asked=asked)
    return list(panel.content())


def only(kind, content):
    return [piece for piece in content if isinstance(piece, kind)]


@pytest.mark.parametrize(("language", "first"), [("de", "Mo"), ("en", "Sun")])
def test_year_has_53_weeks_that_begin_as_the_language_wants(language, first):
    last = date(2026, 11, 23)
    with translation.override(language):
        chart = charts.year_of_days("Days", last, {last: 3})
        assert str(chart.rows[0]) == first
        assert len(chart.columns) == 53
        assert [cell.value for cell in chart.cells[-2:]] == [0, 3]
        assert {(cell.row, cell.column) for cell in chart.cells} == {
            (at % 7, at // 7) for at in range(len(chart.cells))
        }
        assert 52 * 7 < len(chart.cells) <= 53 * 7


def test_page_of_a_model_is_that_of_sets_in_two_round_trips(kit, trips):
    crowd = Crowd(60, 40).sign_in()
    shown(model="app.User")  # loads the scripts
    trips.clear()
    content = shown(model="app.User")
    assert len(trips) == 2
    figures = {str(figure.label): figure.value for figure in only(Figure, content)}
    assert figures["Signed in today: users"] == len(crowd.on(crowd.last))
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


def test_what_goes_on_is_marked(kit):
    last = date(2026, 11, 25)
    chart = charts.active_users("Users", [("Daily", [ActiveDay(last - timedelta(1), 3), ActiveDay(last, 2)])])
    assert chart.labels == ["November 24", "November 25*"]
    assert charts.year_of_days("Days", last, {}).cells[-1].name == "Nov. 25, 2026, so far"
    cohorts = [Cohort(date(2026, 11, 16), 4, [4, 2], True), Cohort(date(2026, 11, 23), 3, [3], True)]
    newest, older = charts.cohort_table("Cohorts", cohorts).rows
    assert (newest[0], newest[2]) == ("Nov. 23, 2026*", "")
    assert (older[0], older[2].value) == ("Nov. 16, 2026", "50 %*")
    done = Cohort(date(2026, 11, 16), 4, [4, 2], False)
    assert charts.cohort_table("Cohorts", [done]).rows[0][2].value == "50 %"


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


def test_page_of_a_user_lists_days_that_were_made_up_or_frozen(kit):
    user, last = saved(3), today()
    for ago in (6, 5, 3):
        user.sign_in(last - timedelta(ago))
    user.make_up_sign_in(last - timedelta(4))
    user.freeze_sign_ins(last - timedelta(2))
    content = shown(model="app.User", user="3")
    (days,), (year,) = only(Table, content), only(HeatMap, content)
    assert [row[1] for row in days.rows] == ["frozen", "made up"]
    assert sum(cell.value for cell in year.cells) == 4


@pytest.mark.parametrize("user", ["4711", "<b>", "a" * 600])
def test_unknown_user_is_said(kit, user):
    (table,) = shown(model="app.User", user=user)
    assert "No user with this primary key" in str(table.empty)
