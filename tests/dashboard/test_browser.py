"""The dashboard in a real Chromium, under a strict Content-Security-Policy."""

import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from redis_kit.core.panels import (
    Bars,
    Figure,
    HeatCell,
    HeatMap,
    LineChart,
    Lines,
    Link,
    Listing,
    Meter,
    Shade,
    Table,
)
from tests.dashboard.support import parts, vault
from tests.fixtures.dashboard import ADMIN, layout_problems

pytestmark = pytest.mark.once

DRAWN = (Meter(2, 5), Meter(5, 5), Lines(("web-1, pid 4711, MainThread", "shop/views/invoices.py:112")))
LEASE = Meter(12, 30, wanted=True, shown="12 s")
VALUES = [n * n for n in range(29)] + [None]
SQUARES = [HeatCell(day, hour, f"{day}, {hour}", day * hour) for day in range(7) for hour in range(24)]
IN_STOCK = ".rk-figures dd >> nth=0"


def wait_for(condition: Callable[[], Any], page: Any, *, timeout: float = 8) -> None:
    """Wait for a condition; the library's own ways need eval(), which the policy forbids, or know only elements."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)


def test_every_page_can_be_read_and_breaks_no_policy(visit, stock):
    stock.client.hset(parts.key("stock"), mapping={"x" * 300: 9, "<b>bold</b>": 700})
    parts.MIRROR[:] = [
        Figure("A figure with a long name", 1234567, "and a hint", alarm=True),
        Table("Wide", [f"column {n}" for n in range(9)], [["word " * 9] * 9] * 3, actions=("reflect",)),
        Table("Empty", ("A",), []),
        Table("View", ("Lease", "Use", "Full", "Lines"), [(LEASE, *DRAWN)]),
        Table("Beside", ("Name", "Lease", "Use", "Full", "Lines"), [(Lines(("lock", "kind")), LEASE, *DRAWN)] * 2),
        Bars("Hours", [(f"{n}:00", n * n) for n in range(48)]),
        LineChart("Days", [f"{n} Nov" for n in range(30)], [("Views", VALUES), ("The month before", VALUES[::-1])]),
        HeatMap("Week", list("MTWTFSS"), [f"{n:02}" for n in range(24)], SQUARES),
        HeatMap("Year", ["Monday", "", "Wednesday", "", "", "", ""], [f"{n // 5}" for n in range(53)], SQUARES),
        Table(
            "Retention",
            ("Cohort", "Day 1", "Day 7"),
            [("Mon", Shade("80 %", 0.8), Shade("", 0)), ("Tue", Shade(4, 1), 1)],
        ),
        parts.InvalidValue("The server is away."),
    ]

    def look(page):
        for url in (ADMIN, f"{ADMIN}stock/", f"{ADMIN}mirror/"):
            page.goto(url)
            page.wait_for_selector("#rk-refresh:visible")
            for data in page.locator("summary:visible").all():
                data.click()
            assert layout_problems(page) == [], url
        page.goto(f"{ADMIN}stock/")
        page.get_by_role("button", name="Clear: bolt").click()
        page.wait_for_selector(".rk-confirm")
        assert layout_problems(page) == []

    visit(look)


def test_long_name_stays_in_its_frame_on_a_phone(visit, stock):
    name = "q" * 150
    parts.MIRROR[:] = [
        Figure(name, 1, hint=f"Jobs are due in: {name}"),
        Table(f"Looked up in {name}", ("Queue", "Value"), [(name, name)], actions=("reflect",)),
        Bars(name, [(name, 1)]),
        Listing(f"Traceback of {name}", name),
    ]

    def look(page):
        assert layout_problems(page) == []
        page.get_by_role("button", name="Reflect: ").click()  # the message repeats the name
        page.wait_for_selector(".messagelist")
        assert layout_problems(page) == []

    visit(look, start=f"{ADMIN}mirror/")


def test_time_at_the_head_of_a_row_stays_on_one_line(visit, stock):
    row = datetime(2026, 11, 27, 15, 4, 5), *["word " * 40] * 2
    parts.MIRROR[:] = [Table("Log", ("Time", "Text", "Text"), [row])]

    def look(page):
        heights = "[...document.querySelectorAll('.rk-moment, .rk-moment span')].map((part) => part.offsetHeight)"
        whole, *halves = page.evaluate(heights)
        assert [whole, whole] == halves

    visit(look, start=f"{ADMIN}mirror/")


def test_policy_forbids_everything_but_files_of_the_site(visit):
    def look(page):
        page.evaluate("document.body.append(Object.assign(document.createElement('script'), { text: 'stolen = 1' }))")
        assert page.evaluate("[typeof stolen, violations.length]") == ["undefined", 1]

    with pytest.raises(AssertionError, match="inline script"):
        visit(look)


def test_figure_changes_without_a_reload_and_open_details_stay_open(visit, stock):
    def look(page):
        answers = []
        page.on("response", lambda response: answers.append(response.status) if "fragment" in response.url else None)
        page.goto(f"{ADMIN}stock/")
        assert page.locator(IN_STOCK).inner_text().startswith("7")
        page.evaluate("window.marker = 1")
        page.locator("#rk-live summary").click()
        page.get_by_role("button", name="Sell one: nut").focus()
        with page.expect_response("**/fragment/"):
            pass
        stock.client.hset(parts.key("stock"), mapping={"axle": 50})
        wait_for(lambda: page.locator(IN_STOCK).inner_text().startswith("57"), page)
        assert answers[0] == 304
        assert answers[-1] == 200
        assert page.evaluate("[marker, document.querySelector('#rk-live details').open]") == [1, True]
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Sell one: nut"
        wait_for(lambda: re.fullmatch(r"updated \d+ s ago", page.locator("#rk-state").inner_text()), page)

    visit(look)


def shelf(number: int) -> list[Any]:
    """Return content that differs from one number to the next: rows and sections come, go and change."""
    names = [f"new {number}", *(f"box {each}" for each in range(number % 3)), "nut", "bolt", f"later {number}"][
        :: (-1) ** number
    ]
    rows = [(Link(name, "mirror", {"name": name}), *[f"{name} {number}"] * 30) for name in names]
    columns = ["Part", *(f"column {each}" for each in range(30))]
    table = Table(f"Parts: {len(names)}", columns, rows, values=names, selects=("reflect",))
    once = [Table("Once in a while", ("A",), [(number,)])] if number % 2 else []
    return [*once, table, Listing("Long", f"line {number}\n" * 99), Bars("Hours", [("0:00", 1), ("1:00", number)])]


def refresh_by(page: Any, change: Callable[[], None]) -> None:
    """Change what the page shows, and wait until it shows that."""
    before = page.locator("#rk-live").inner_text()
    change()
    with page.expect_response("**/fragment/"):
        page.clock.run_for(2000)
    wait_for(lambda: page.locator("#rk-live").inner_text() != before, page)


def test_list_keeps_focus_and_scroll_over_ten_refreshes_that_change_it(visit, stock):
    parts.MIRROR[:] = shelf(0)

    def look(page):
        page.clock.install()
        page.goto(f"{ADMIN}mirror/")
        page.get_by_label("Select nut").check()
        page.locator("summary").filter(has_text="Long").click()
        page.get_by_role("link", name="bolt").focus()
        page.evaluate("document.querySelector('.rk-listing').scrollTop = 90")
        page.evaluate("document.querySelector('.rk-scroll:has(a)').scrollLeft = 150")
        for number in range(1, 11):
            refresh_by(page, lambda number=number: parts.MIRROR.__setitem__(slice(None), shelf(number)))
            assert page.evaluate("document.activeElement.textContent") == "bolt", number
            assert page.locator("tr:has(:focus) td").first.inner_text() == f"bolt {number}"
            assert page.evaluate("document.querySelector('.rk-scroll:has(a)').scrollLeft") == 150
            assert page.evaluate("document.querySelector('.rk-listing').scrollTop") == 90
            assert [box.input_value() for box in page.locator("input:checked").all()] == ["nut"]

    visit(look, window="clock")


def test_focus_does_not_pass_to_another_row_when_its_own_goes(visit, stock):
    def look(page):
        page.clock.install()
        page.goto(f"{ADMIN}stock/")
        page.get_by_role("button", name="Clear: bolt").focus()
        refresh_by(page, lambda: stock.client.hdel(parts.key("stock"), "bolt"))
        assert page.evaluate("document.activeElement.localName") == "tbody"
        refresh_by(page, lambda: stock.client.hset(parts.key("stock"), "nut", 5))
        assert page.evaluate("document.activeElement.localName") == "tbody"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.ariaLabel") == "Sell one: nut"

    visit(look, window="clock")


def test_refresh_stops_while_off_hidden_or_text_is_selected(visit, stock):
    def look(page):
        page.get_by_label("Refresh").select_option("off")
        wait_for(lambda: page.locator("#rk-state").inner_text().endswith("paused"), page)
        page.reload()
        assert page.get_by_label("Refresh").input_value() == "0"
        page.clock.install()
        asked = []
        page.on("request", lambda request: asked.append(request.url) if "fragment" in request.url else None)
        page.reload()
        page.clock.run_for(60_000)
        assert asked == []
        page.get_by_label("Refresh").select_option("2")
        hide(page, hidden=True)
        page.clock.run_for(60_000)
        assert page.locator("#rk-state").inner_text().endswith("paused")
        assert asked == []
        with page.expect_response("**/fragment/"):
            hide(page, hidden=False)
        assert len(asked) == 1
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#rk-live h2'))")
        page.clock.run_for(60_000)
        assert page.locator("#rk-state").inner_text().endswith("paused")
        assert len(asked) == 1
        page.evaluate("getSelection().removeAllRanges()")
        with page.expect_response("**/fragment/"):
            page.clock.run_for(3_000)

    visit(look, window="clock", start=f"{ADMIN}stock/")


def hide(page, *, hidden):
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        "document.dispatchEvent(new Event('visibilitychange')) }",
        hidden,
    )


def test_signed_out_viewer_sees_a_message(visit, stock):
    def look(page):
        page.clock.install()
        page.goto(f"{ADMIN}stock/")
        page.context.clear_cookies()
        page.clock.run_for(2500)
        wait_for(lambda: "signed out" in page.locator("#rk-state").inner_text(), page)
        assert page.locator(IN_STOCK).inner_text().startswith("7")

    visit(look, window="clock")


def test_buttons_are_reached_and_pressed_with_the_keyboard(visit, stock):
    def look(page):
        page.locator(".rk-groups a").first.focus()
        seen = []
        while not seen or seen[-1] != "Clear: bolt":
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent.trim()"))
            assert len(seen) < 20, seen
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", seen
        page.keyboard.press("Enter")
        page.wait_for_selector(".rk-confirm")
        page.get_by_role("button", name="Clear").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")
        assert "bolt: 1 cleared." in page.locator(".messagelist").inner_text().lower()

    visit(look, start=f"{ADMIN}stock/")
    assert stock.client.hget(parts.key("stock"), "bolt") is None


def test_everything_works_without_javascript(visit, stock):
    def look(page):
        assert page.locator(IN_STOCK).inner_text().startswith("7")
        assert not page.locator("#rk-refresh").is_visible()
        page.get_by_role("button", name="Sell one: bolt").click()
        page.wait_for_selector(".messagelist")
        page.get_by_role("textbox", name="Clear… Part").fill("nut")
        page.get_by_role("button", name="Clear…", exact=True).click()
        page.get_by_role("button", name="Clear", exact=True).click()
        page.wait_for_selector(".messagelist")

    visit(look, start=f"{ADMIN}stock/", java_script_enabled=False)
    assert stock.client.hgetall(parts.key("stock")) == {"bolt": "2"}


def test_name_can_be_typed_with_the_keyboard_only(visit, stock):
    stock.options(EXTRA_COMPONENTS=["tests.dashboard.support.parts.Parts", "tests.dashboard.support.vault.Vault"])
    vault.DONE.clear()
    vault.BOXES.clear()
    vault.BOXES.update({"gold": 1, "部门 x": 2})

    def look(page):
        assert layout_problems(page) == []
        page.get_by_role("button", name="Open: gold").press("Enter")
        page.get_by_label("Type the name above to confirm").press("Tab")
        page.keyboard.type("it hangs")
        page.keyboard.press("Enter")  # the browser asks for the name
        assert page.evaluate("document.activeElement.id") == "rk-typed"
        assert layout_problems(page) == []
        page.keyboard.type("gold")
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")
        page.get_by_role("button", name="Resize: gold").press("Enter")
        page.get_by_label("New size").fill("12")
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")

    visit(look, start=f"{ADMIN}vault/")
    assert [*vault.DONE] == [("open", "0:gold"), ("resize", "0:gold", "12")]


def test_theme_of_few_colours_shows_buttons_and_the_present_page(visit, stock):
    def look(page):
        page.emulate_media(forced_colors="active")
        line = "(element) => getComputedStyle(element).borderBottom"
        lines = [each.evaluate(line) for each in page.locator(".rk-groups > li > a, .rk-groups summary").all()]
        assert [each == lines[-1] for each in lines] == [False] * (len(lines) - 1) + [True]
        assert all(each.endswith("solid rgb(255, 255, 255)") for each in lines[:-1])
        buttons = [each.evaluate(line) for each in page.locator(".rk .button:visible").all()]
        assert buttons
        assert all(each.startswith("1px solid") for each in buttons)

    visit(look, start=f"{ADMIN}stock/")


def test_printed_page_has_the_content_alone(visit, stock):
    def look(page):
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 794, "height": 900})
        assert page.locator("button:visible, select:visible, input:visible, nav:visible").count() == 0
        assert page.locator(".rk-table:visible, .rk-chart:visible").count() == 2
        assert page.locator(".rk-page").bounding_box()["width"] > 740
        assert page.get_by_role("columnheader", name="Actions").count() == 0

    visit(look, start=f"{ADMIN}stock/")


def test_labels_in_cards_stand_at_the_start(visit, stock):
    row = ("nut", 60, "word")
    parts.MIRROR[:] = [Table("Parts", ("Name", "Sold in the last minute of the day", "Text in the same card"), [row])]

    def look(page):
        page.set_viewport_size({"width": 794, "height": 900})
        script = "(element) => getComputedStyle(element, '::before').textAlign"
        assert [each.evaluate(script) for each in page.locator("td[data-label]").all()] == ["start"] * 2

    visit(look, start=f"{ADMIN}mirror/")
