"""The dashboard beside the Web Content Accessibility Guidelines, levels A and AA, by axe-core in Chromium."""

from typing import Any

import pytest

from redis_kit.core.panels import Bars, Box, Figure, Graph, HeatCell, HeatMap, LineChart, Listing, Meter, Shade, Table
from tests.dashboard.support import parts
from tests.fixtures.dashboard import ADMIN

pytestmark = pytest.mark.once
GUIDELINES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def findings(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for scheme, width in (("light", 1280), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.getAnimations().forEach((each) => each.finish())")
        for violation in Axe().run(page, options=GUIDELINES).response["violations"]:
            found += [f"{scheme}, {width} px: {violation['help']}: {node['html']}" for node in violation["nodes"]]
    return found


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
