"""Each page that a real server answered is counted, or counted as dropped."""

import pytest

from tests.chaos.pageviews import http_load


@pytest.mark.parametrize(
    ("kind", "requests", "outage"), [("uvicorn", 240, 0.0), ("preload", 1200, 0.7)], ids=["uvicorn", "preload, outage"]
)
def test_each_view_is_counted_or_dropped(kind, requests, outage):
    outcome = http_load.run(http_load.Plan(requests, kind, outage))
    outcome.check()
    answered, views, lost = outcome.facts.values()
    assert answered == requests
    assert views + sum(lost.values()) == requests
    assert lost.keys() >= {"overflow", "waiting"}
    if not outage:
        assert views == requests
