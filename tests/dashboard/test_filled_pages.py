"""All pages with something of each component on them: every link leads somewhere, and every button works."""

import contextlib
import re
import secrets
from collections import Counter
from collections.abc import Callable
from urllib.parse import urljoin

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.utils.html import escape

from redis_kit.core import component, connections
from redis_kit.core.indexes import model_index
from redis_kit.core.indexes.row_index import RowIndex
from redis_kit.dashboard.collect import panels
from tests.dashboard.support.attacks import SAMPLE, harmless_links, without_titles
from tests.dashboard.support.filled import fill
from tests.dashboard.support.html import page, whole_page
from tests.dashboard.test_custom_site import OFFICE
from tests.fixtures.dashboard import ADMIN

pytestmark = pytest.mark.once

BUILTIN = component.BUILTIN
EXAMPLE = re.compile(r"such as (.+?)(,| or |$)")  # what the label of a field names


@pytest.fixture(autouse=True)
def no_indexes(monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])


@pytest.fixture
def filled(kit):
    fill(kit)
    return kit


def crawled(links_of: Callable[[str], list[str]], start: str = ADMIN, *, alike: int = 8) -> list[str]:
    """Follow the links of each page within the dashboard, and return the addresses of the pages.

    At most ``alike`` of them differ only in the values of their search.
    """
    found, kinds = [start], Counter()
    for url in found:  # which grows meanwhile
        for link in links_of(url):
            there = urljoin(url, link).partition("#")[0]
            kind = re.sub(r"=[^&]*", "", there)
            if there.startswith(start) and there not in found and kinds[kind] < alike:
                kinds[kind] += 1
                found.append(there)
    return found


def links_with(client, pages=None):
    """Return a function that returns the links of a page, which must be whole; ``pages`` gets the text of each."""
    pages = {} if pages is None else pages

    def links_of(url):
        response = client.get(url)
        if response["Content-Type"].startswith("text/csv"):
            return []
        pages[url] = response.content.decode()
        found = whole_page(response)
        assert not [one.words for one in found.elements if "rk-error" in (one.attributes.get("class") or "")], url
        return [one.attributes["href"] for one in found.find("a") if one.attributes.get("href")]

    return links_of


@contextlib.contextmanager
def user(kit, *rules):
    """Connect as a user of the server with these rules."""
    name, password = f"reader-{secrets.token_hex(4)}", secrets.token_hex(8)
    kit.client.execute_command("ACL", "SETUSER", name, "on", f">{password}", "&*", *rules)
    known = kit.settings.REDIS_KIT["CONNECTIONS"]["default"]
    kit.options(CONNECTIONS={"default": {**known, "USERNAME": name, "PASSWORD": password}})
    connections.close()
    yield
    connections.close()
    kit.client.execute_command("ACL", "DELUSER", name)


def test_every_link_leads_to_a_page_and_no_page_writes(filled, boss):
    # Only PFMERGE needs a key for its result, which ends with the script.
    scratch = "(+eval +evalsha +pfmerge +del %R~* %RW~*:union)"
    with user(filled, "~*", "+@all", "-@write", scratch):
        found = crawled(links_with(boss), alike=3)
    assert {f"{ADMIN}{panel.slug}/" for panel in panels()} < {*found}
    assert len(found) > 30


def test_refused_access_is_told_on_every_page(filled, boss):
    with user(filled, "~*", "+@connection"):
        for panel in panels():
            errors = page(boss.get(f"{ADMIN}{panel.slug}/")).find("p", class_="rk-error")
            told = [one.words.startswith("Redis refused access") and "ACL LOG" in one.words for one in errors]
            # Servers show what they may. Without sinks hand-overs ask no server, and the audit log never does.
            assert told == [True] or panel.slug in ("server", "hand-overs", "audit"), panel.slug
    with user(filled, "~*", "+@all", "-bitcount"):  # the script is allowed, and a command in it is not
        (error,) = page(boss.get(f"{ADMIN}signins/")).find("p", class_="rk-error")
        assert re.match("Redis refused access.* 'bitcount' command", error.words)


def buttons_on(pages):
    """Return for each action a page with its button: where actions share pages, one may take what another needs."""
    found, used = {}, Counter()
    for url in sorted(pages, key=lambda url: ("id=" not in url, "state=" not in url)):
        for action in re.findall(r'formaction="([^"?]*/do/[^"?]*)', pages[url]):
            found.setdefault(action, []).append(url)
    for action, where in sorted(found.items(), key=lambda item: len({*item[1]})):
        found[action] = min(where, key=used.__getitem__)
        used[found[action]] += 1
    return dict(sorted(found.items(), key=lambda item: "id=" not in item[1]))


def example(label):
    """Return what the label of a field names as an example."""
    found = EXAMPLE.search(label)
    return found[1] if found else ""


def press(client, url, action):
    """Press a button and confirm it with the examples of its fields; return the messages of the page after it."""
    shown = whole_page(client.get(url))
    button = next(b.attributes for b in shown.find("button") if b.attributes.get("formaction", "").startswith(action))
    data = {button["name"]: button["value"]}
    data |= {box.attributes["name"]: box.attributes["value"] for box in shown.find("input", type="checkbox")[:1]}
    response = client.post(button["formaction"], data)
    if response.status_code == 200:
        response = confirm(client, whole_page(response))
    after = client.get(response.url)
    assert after.status_code == 200
    return [message.level_tag for message in get_messages(after.wsgi_request)]


def confirm(client, shown):
    """Submit the form of a page that asks for a confirmation."""
    (form,) = shown.find("form", class_="rk-confirm")
    fields = {one.attributes.get("name"): one.attributes.get("value", "") for one in shown.find("input")}
    if "typed" in fields:
        fields["typed"] = shown.find("dd")[0].words
    if "wants" in fields:
        (label,) = shown.find("label", **{"for": "rk-wants"})
        fields["wants"] = example(label.words)
    return client.post(form.attributes["action"], fields)


@pytest.mark.urls("tests.dashboard.test_custom_site")
def test_every_button_works_in_a_site_of_a_project(filled, boss, monkeypatch):
    monkeypatch.setattr(RowIndex, "rebuild", lambda index, progress: 0)  # its thread may not read rows of this test
    pages = {}
    crawled(links_with(boss, pages), OFFICE)
    buttons = buttons_on(pages)
    actions = {f"{OFFICE}{panel.slug}/do/{name}/" for panel in panels() for name in panel.actions()}
    assert actions - {*buttons} == set(), "fill() gives these no button"
    answers = {action: press(boss, url, action) for action, url in buttons.items()}
    assert {action: answer for action, answer in answers.items() if answer != ["success"]} == {}
    assert {entry.object_id for entry in LogEntry.objects.all()} >= {"locks", "throttles", "queues", "workers"}
    assert LogEntry.objects.count() == len(buttons)


@pytest.mark.urls("tests.dashboard.test_custom_site")
def test_each_kind_of_button_works_without_javascript(filled, visit, monkeypatch):
    """One is for the selected rows, one wants a name to be typed, and one has a field in its confirmation."""
    monkeypatch.setattr(component, "BUILTIN", BUILTIN)
    filled.options(EXTRA_COMPONENTS=[])

    def look(browser):
        def said():
            return [each.get_attribute("class") for each in browser.locator(".messagelist li").all()]

        browser.locator(".rk-table input[type=checkbox]").first.check()
        browser.get_by_role("button", name="Retry…").first.click()
        browser.locator(".rk-confirm button").click()
        assert said() == ["success"]
        browser.goto(f"{OFFICE}locks/")
        browser.locator("button[formaction*='do/release/']").first.click()
        browser.fill("#rk-typed", browser.locator(".rk-confirm dd").inner_text())
        browser.locator(".rk-confirm button").click()
        assert said() == ["success"]
        browser.locator("button[formaction*='do/set_limit/']").first.click()
        browser.fill("#rk-wants", "7")
        browser.locator(".rk-confirm button").click()
        assert said() == ["success"]

    visit(look, start=f"{OFFICE}jobs/?queue=archive&state=dead", java_script_enabled=False)
    assert LogEntry.objects.count() == 3


def test_every_page_breaks_no_policy_in_a_browser(filled, visit, monkeypatch):
    monkeypatch.setattr(component, "BUILTIN", BUILTIN)

    def look(browser):
        def links_of(url):
            assert browser.goto(url).status == 200, url
            return browser.locator("a[href]:not([download])").evaluate_all(
                "all => all.map((each) => each.getAttribute('href'))"
            )

        assert len(crawled(links_of, alike=1)) > 15

    visit(look)


@pytest.mark.parametrize("attack", ["".join(SAMPLE[::2]), "".join(SAMPLE[1::2])])
def test_text_of_visitors_and_programs_adds_nothing_to_a_page(kit, boss, attack):
    showing = set()

    def problems(url):
        response = boss.get(url)
        found = whole_page(response)
        if escape(attack[:8]) in response.content.decode():
            showing.add(url.removeprefix(ADMIN).partition("/")[0])
        assert harmless_links(found), url
        shape = str(without_titles(found.shape))
        assert not [word for word in ("onerror", "onload", "onmouseover", "iframe", "'b'") if word in shape], url
        assert all(one.attributes.get("src") for one in found.find("script")), url
        return [one.attributes["href"] for one in found.find("a") if one.attributes.get("href")]

    fill(kit, attack)
    assert len(crawled(problems, alike=1)) > 15
    assert {"locks", "throttles", "queues", "workers", "pageviews"} <= showing
