"""Views are exact and visitors close to exact sets, on an invented log, and on a real one if it is available."""

import pytest

from redis_kit.pageviews import batch
from tests.chaos.pageviews import truth
from tests.fixtures.real_log import REAL_LOG, needs_real_log


@pytest.fixture(autouse=True)
def one_identity(kit, monkeypatch):
    """A visitor is one over all days, so that ranges can be compared with exact sets."""
    monkeypatch.setattr(batch, "_admitted", {})
    kit.options(PAGEVIEWS={"VISITOR": "user", "RETENTION": 3660 * 86_400})


def test_views_are_exact_and_visitors_within_the_error_of_sketches():
    rows = list(truth.compare(truth.replay(truth.invented(7, 3000)), pages=2))
    assert len(rows) > 300
    assert not truth.off(rows, truth.MOST)
    assert len(truth.off(rows, truth.TOLERANCE)) <= len(rows) / 100


def test_comparison_finds_a_missing_view_and_a_sum_in_place_of_a_union(monkeypatch):
    exact = truth.replay(truth.invented(7, 900))
    exact.views["", max(exact.views)[1]] += 1
    assert truth.off(truth.compare(exact, pages=0), truth.MOST)
    monkeypatch.setattr(
        truth.PageViews, "visitors", lambda self, *days: sum(day.visitors for day in self.by_day(*days))
    )
    assert truth.off(truth.compare(truth.replay(truth.invented(8, 900)), pages=0), truth.MOST)


@needs_real_log
def test_all_days_and_pages_of_a_real_log_are_within_two_percent():
    rows = list(truth.compare(truth.replay(truth.read(REAL_LOG))))
    assert len(rows) > 100
    assert not truth.off(rows, truth.TOLERANCE)
