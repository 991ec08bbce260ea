from datetime import date, timedelta

import pytest
from django.utils import translation

from redis_kit.core.panels import Figure, HeatMap, LineChart, Listing, Shade, Table, Viewer
from redis_kit.signins.dashboard import charts
from redis_kit.signins.dashboard.panel import SignInsPanel
from redis_kit.signins.days import today
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
    (listing,) = only(Listing, content)
    assert listing.text.splitlines()[-1] == f"{crowd.last},{len(crowd.on(crowd.last))}"


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


@pytest.mark.parametrize("user", ["4711", "<b>", "a" * 600])
def test_unknown_user_is_said(kit, user):
    (table,) = shown(model="app.User", user=user)
    assert "No user with this primary key" in str(table.empty)
