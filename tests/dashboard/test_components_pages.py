"""The panels of the built-in components."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest
import redis
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from redis_kit.core import connections
from redis_kit.core.component import components
from redis_kit.core.panels import Viewer
from redis_kit.dashboard.collect import panels
from redis_kit.dashboard.models import Dashboard
from redis_kit.queues.queue import Queue
from redis_kit.signins import SignInMixin
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN
from tests.fixtures.kit import Kit
from tests.fixtures.servers import wait_for

ROUND_TRIPS = 3  # of one page


def test_every_panel_has_its_own_page(kit):
    slugs = [panel.slug for panel in panels()]
    assert len(slugs) == len(set(slugs)) >= 5
    assert [component.label for component in components() if not component.panels] == []


def test_pages_of_all_panels_are_complete_and_cheap(kit, boss, trips):
    models = sum(issubclass(model, SignInMixin) for model in apps.get_models())
    for panel in panels():
        boss.get(f"{ADMIN}{panel.slug}/")  # loads the scripts
        trips.clear()
        found = page(boss.get(f"{ADMIN}{panel.slug}/"))
        assert not found.find("p", class_="rk-error"), panel.slug
        assert found.find("h1")[0].words == str(panel.title)
        assert len(trips) <= (models if panel.slug == "signins" else ROUND_TRIPS), panel.slug


def test_overview_is_complete_and_needs_three_round_trips(kit, boss, trips):
    Queue("mail").put("job")
    boss.get(ADMIN)  # loads the scripts
    trips.clear()
    found = page(boss.get(ADMIN))
    assert not found.find("p", class_="rk-error")
    assert len(found.find("section", class_="rk-tile")) >= 6
    assert len(found.find("section", class_="rk-health")) == 1
    assert len(trips) <= ROUND_TRIPS


def test_search_forms_do_not_call_a_server(kit, trips):
    kit.connect({"URL": "redis://127.0.0.1:1/0"}, THROTTLING={"POLICIES": {"api": {"RATES": "1/m"}}})
    forms = []
    for panel in panels():
        panel.viewer = Viewer(lambda permission: True, {})
        forms.append(panel.search())
    assert len([form for form in forms if form]) == 14
    assert not trips


def test_actions_need_permissions_that_exist(kit, db):
    from django.contrib.auth.models import Permission

    there = {f"redis_kit.{one}" for one in Permission.objects.values_list("codename", flat=True)}
    wanted = {action.permission for panel in panels() for action in panel.actions().values()}
    assert wanted <= there


def test_every_button_needs_post_its_permission_and_a_token(kit, signed_in):
    viewer, forger = signed_in("view_dashboard"), signed_in("superuser", enforce_csrf_checks=True)
    routes = [f"{ADMIN}{panel.slug}/do/{name}/" for panel in panels() for name in panel.actions()]
    assert len(routes) > 20
    for route in routes:
        assert viewer.put(route).status_code == 405, route
        assert viewer.post(route, {"value": "a", "confirmed": "1"}).status_code == 403, route
        assert forger.post(route, {"value": "a", "confirmed": "1"}).status_code == 403, route


def test_only_buttons_take_post(kit, boss):
    routes = admin.site._registry[Dashboard].get_urls()
    urls = {
        reverse(f"admin:{route.name}", kwargs={name: given.get(name, "x") for name in route.pattern.converters})
        for given in ({"slug": panel.slug} for panel in panels())
        for route in routes
        if not route.name.endswith("_act")  # see above
    }
    assert len(urls) > 25
    assert [url for url in urls if boss.post(url, {"confirmed": "1"}).status_code != 405] == []


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_all_panels_wait_for_three_answers_at_most_in_an_outage(own_kit, boss, unanswered, how):
    own_kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SINK": "celery"}}})  # without any, one page asks nothing
    urls = [ADMIN, *(f"{ADMIN}{panel.slug}/" for panel in panels())]
    for url in urls:
        boss.get(url)
    getattr(own_kit.server, how)()
    try:
        for url in urls:
            connections.close()  # so that no breaker is open yet
            unanswered.clear()
            answer = page(boss.get(url))
            assert len(unanswered) <= 3, url
            # With its default policy throttling says so in its own words. Without sinks hand-overs ask no server, and
            # the audit log never does.
            errors = answer.find("section" if url == ADMIN else "p", class_="rk-error")
            assert len(errors) == 1 or url.endswith(("/throttles/", "/hand-overs/", "/audit/")), url
    finally:
        own_kit.server.thaw() if how == "freeze" else None


@pytest.fixture
def debugged_kit(make_server, settings):
    """The kit on a server that accepts commands for debugging."""
    server = make_server(tcp=True, extra_args=("--enable-debug-command", "yes"))
    with contextlib.closing(Kit(server, settings, patient=False)) as found:
        found.options(THROTTLING={"POLICIES": {"api": {"RATES": "1/m"}}})  # without any, one page asks nothing
        yield found


def errors_of_pages(client):
    """Return the errors of each page, of which each is asked on a new connection."""
    errors = {}
    for slug in ("", *(f"{panel.slug}/" for panel in panels() if panel.slug not in ("hand-overs", "audit"))):
        connections.close()  # so that no breaker is open
        found = page(client.get(f"{ADMIN}{slug}"))
        boxes = [one.words for one in (*found.find("p", class_="rk-error"), *found.find("section", class_="rk-error"))]
        errors[slug] = next(iter(boxes), "")
    return errors


def test_pages_tell_what_a_server_that_can_not_serve_says(debugged_kit, boss):
    server = debugged_kit.client
    errors_of_pages(boss)  # loads the scripts
    server.config_set("replica-serve-stale-data", "no")
    server.replicaof("127.0.0.1", "1")
    errors = errors_of_pages(boss)
    assert [slug for slug, error in errors.items() if "Redis can't serve now" not in error] == []
    server.replicaof("NO", "ONE")


def test_pages_of_a_replica_can_be_read_and_its_buttons_say_no(debugged_kit, boss):
    Queue("mail").put("job")
    errors_of_pages(boss)
    debugged_kit.client.replicaof("127.0.0.1", "1")
    began = monotonic()
    errors = errors_of_pages(boss)
    assert monotonic() - began < len(errors)  # a second for each
    # Figures of page views and sign-ins may need a key for their result.
    assert {slug for slug, error in errors.items() if error} <= {"", "pageviews/", "signins/"}
    assert all("You can't write against a read only replica" in error for error in errors.values() if error)
    for slug in ("", "server/"):
        assert "The connection leads to a replica, which refuses writes." in boss.get(f"{ADMIN}{slug}").content.decode()
    answer = page(boss.post(f"{ADMIN}queues/do/pause/", {"value": "mail", "confirmed": "1"}, follow=True))
    assert "You can't write against a read only replica." in answer.find("ul", class_="messagelist")[0].words
    assert not LogEntry.objects.exists()


def test_pages_tell_that_a_server_loads_its_data(debugged_kit, boss):
    server = debugged_kit.client
    errors_of_pages(boss)
    server.mset({f"{number}": os.urandom(500) for number in range(2000)})
    server.config_set("loading-process-events-interval-bytes", 1024)
    server.config_set("key-load-delay", 8000)  # µs
    with ThreadPoolExecutor(1) as thread, redis.Redis.from_url(debugged_kit.url, socket_timeout=60) as patient:
        reloaded = thread.submit(patient.execute_command, "DEBUG", "RELOAD")
        wait_for(lambda: server.info("persistence")["loading"])
        errors = errors_of_pages(boss)
        server.config_set("key-load-delay", 0)
        assert reloaded.result(30)
    assert [slug for slug, error in errors.items() if "Redis can't" not in error] == []
    assert any("is loading the dataset in memory" in error for error in errors.values())


def test_pages_can_be_read_while_a_server_is_full(debugged_kit, boss):
    errors_of_pages(boss)
    debugged_kit.client.config_set("maxmemory", "1mb")
    errors = errors_of_pages(boss)
    assert not {slug: error for slug, error in errors.items() if error}
