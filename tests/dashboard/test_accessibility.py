"""The dashboard beside the Web Content Accessibility Guidelines, levels A and AA, by axe-core in Chromium."""

import pytest

from redis_kit.core.panels import Bars, Box, Figure, Graph, HeatCell, HeatMap, LineChart, Listing, Meter, Shade, Table
from tests.dashboard.support import parts
from tests.fixtures.dashboard import ADMIN, findings

pytestmark = pytest.mark.once


def test_pages_keep_to_the_guidelines(visit, stock):
    boxes = [Box("one", "done", 0, 0, "good"), Box("two", "failed", 1, 0, "bad")]
    parts.MIRROR[:] = [
        Figure("Lost", 3, "since noon", alarm=True),
        Table("Parts", ("Name", "Use", "Kept"), [("nut", Meter(5, 5), Shade("80 %", 0.8))], actions=("reflect",)),
        Bars("Hours", [(f"{hour}:00", hour) for hour in range(5)]),
        LineChart("Days", ["Mon", "Tue"], [("Views", [1, 2]), ("The week before", [2, None])]),
        HeatMap("Week", ["Mon", "Tue"], ["00", "01"], [HeatCell(0, 1, "Mon 1", 7), HeatCell(1, 0, "Tue 0", 0)]),
        Graph("Steps", boxes, [(0, 1)], "Two steps, one of which failed."),
        Listing("Traceback", "line\n" * 99),
        parts.InvalidValue("The server is away."),
    ]

    def look(page):
        found = {}
        for url in (ADMIN, f"{ADMIN}mirror/"):
            page.goto(url)
            page.wait_for_selector("#rk-refresh:visible")
            for data in page.locator("summary:visible").all():
                data.click()
            found[url] = findings(page)
        page.goto(f"{ADMIN}stock/")
        page.get_by_role("button", name="Clear: bolt").click()
        page.wait_for_selector(".rk-confirm")
        found["confirmation"] = findings(page)
        assert not {url: problems for url, problems in found.items() if problems}

    visit(look)
