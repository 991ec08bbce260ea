import pytest
from django.core.management import call_command
from django.template.loader import render_to_string
from django.utils import translation

from redis_kit.core import connections, flow
from redis_kit.core.errors import ConfigurationError, KeyConflict, RedisUnavailable
from redis_kit.core.panels import Alert, Figure, Sparkline, Table, Tile
from redis_kit.core.steps import Call
from redis_kit.dashboard import collect
from redis_kit.dashboard.audit_page import AuditPanel
from redis_kit.dashboard.settings import DashboardSettings
from redis_kit.operations.dashboard.keys_page import KeysPanel
from redis_kit.pageviews import PageViews, flush
from redis_kit.queues.dashboard.workers_page import WorkersPanel
from tests.dashboard.support import parts
from tests.dashboard.support.html import page, whole_page
from tests.fixtures.dashboard import ADMIN
from tests.pageviews.urls import BROWSER

PAGES = [ADMIN, f"{ADMIN}stock/", f"{ADMIN}mirror/"]
MISSING = "These parts show nothing, or not everything, until it answers again:"
FRAGMENTS = [f"{page}fragment/" for page in PAGES]


@pytest.mark.parametrize("url", PAGES + FRAGMENTS)
def test_only_people_with_the_permission_see_a_page(stock, signed_in, url):
    assert signed_in("view_dashboard").get(url).status_code == 200
    assert signed_in("superuser").get(url).status_code == 200
    assert signed_in().get(url).status_code == 403
    assert signed_in("manage_queues", "release_locks", "reset_throttles").get(url).status_code == 403
    for stranger in (signed_in("view_dashboard", staff=False), None):
        response = (stranger or signed_in().__class__()).get(url)
        assert response.status_code == 302
        assert response.url.startswith("/admin/login/")


def test_index_shows_the_dashboard_only_with_the_permission(stock, signed_in):
    assert ADMIN in signed_in("view_dashboard").get("/admin/").content.decode()
    for client in (signed_in(), signed_in("manage_queues")):
        text = client.get("/admin/").content.decode()
        assert ADMIN not in text
        assert "Redis" not in text


def test_overview_has_the_title_of_the_menu(stock, boss):
    assert "<h1>Dashboard</h1>" in boss.get(ADMIN).content.decode()


def test_index_offers_neither_adding_nor_changing(stock, boss):
    assert f"{ADMIN}add/" not in boss.get("/admin/").content.decode()
    assert boss.get(f"{ADMIN}add/").status_code == 404


def test_disabled_dashboard_is_hidden_from_everybody(stock, boss):
    stock.options(DASHBOARD={"ENABLED": False})
    assert [boss.get(url).status_code for url in PAGES + FRAGMENTS] == [403] * 6
    assert ADMIN not in boss.get("/admin/").content.decode()


@pytest.mark.parametrize("refresh", [1, 61, "5"])
def test_refresh_out_of_range_is_refused(stock, refresh):
    from redis_kit.core import conf

    stock.options(DASHBOARD={"REFRESH": refresh})
    with pytest.raises(ConfigurationError, match=r"\['REFRESH'\]"):
        conf.section(DashboardSettings)


def test_overview_has_a_tile_of_each_panel_with_its_first_figures(stock, boss):
    parts.MIRROR[:] = [Table("Long", ("A",), [("row",)] * 9), *(Figure(name, n) for n, name in enumerate("abcd"))]
    found = page(boss.get(ADMIN))
    assert [one.words for one in found.find("dd")] == ["7 Alarm", "of all parts", "0", "1", "2"]
    assert [one.words for one in found.find("h2")] == ["Needs attention", "Stock", "Mirror"]
    assert [one.words for one in found.find("p", class_="rk-trend")] == ["Left"]
    assert not found.find("table")
    assert not [one for one in found.find("button") if "formaction" in one.attributes]


def test_tile_without_figures_has_the_number_of_rows(stock, boss):
    parts.MIRROR[:] = [Table("Long", ("A",), [("row",)] * 9)]
    (_stock, mirror) = page(boss.get(ADMIN)).find("section", class_="rk-tile")
    assert mirror.words == "Mirror Long 9"


def test_alarms_of_all_panels_are_at_the_top_of_the_overview(stock, boss):
    calm = [Figure(name, 1) for name in "abc"]
    parts.MIRROR[:] = [*calm, Figure("Bad", 2, "Look at it.", alarm=True)]
    (box,) = page(boss.get(ADMIN)).find("section", class_="rk-attention")
    assert box.words == "Needs attention Stock: In stock 7 · of all parts Mirror: Bad 2 · Look at it."
    parts.MIRROR.clear()
    stock.client.hset(parts.key("stock"), "bolt", 50)
    found = page(boss.get(ADMIN))
    assert not found.find("section", class_="rk-attention")
    assert [one.words for one in found.find("p", class_="rk-well")] == ["Nothing needs attention."]


def test_own_tile_gets_replies_and_its_alerts_link_to_a_search(stock, boss, monkeypatch):
    def tile(self, replies):
        trend = Sparkline("an hour", [0, 1, None, 3])
        return Tile([Figure("Echo", replies["default"])], trend, [Alert("Loud", 9, "Hush.", {"name": "a b"})])

    monkeypatch.setattr(parts.MirrorPanel, "reads", lambda self: {"default": flow.single(Call("ECHO", "hello"))})
    monkeypatch.setattr(parts.MirrorPanel, "tile", tile)
    found = page(boss.get(ADMIN))
    (_stock, mirror) = found.find("section", class_="rk-tile")
    assert mirror.words == "Mirror Echo hello an hour"
    assert found.find("path")[-1].attributes["d"] == "M0 20.0h0L1 13.3M3 0.0h0"
    (alert,) = [one for one in found.find("li") if "Loud" in one.words]
    assert alert.words == "Mirror: Loud 9 · Hush."
    assert f"{ADMIN}mirror/?name=a+b" in [one.attributes["href"] for one in found.find("a")]


def test_error_of_one_flow_hides_no_other_tile(stock, boss, monkeypatch, caplog):
    monkeypatch.setattr(parts.MirrorPanel, "reads", lambda self: {"default": flow.single(Call("HGET", "x"))})
    found = page(boss.get(ADMIN))
    assert len(found.find("p", class_="rk-error")) == 1
    assert "7 Alarm" in [one.words for one in found.find("dd")]
    monkeypatch.setattr(parts.MirrorPanel, "reads", lambda self: 1 / 0)
    assert "This panel failed." in page(boss.get(ADMIN)).find("p", class_="rk-error")[0].words


def test_panel_page_has_everything_under_headings_in_order(stock, boss):
    found = page(boss.get(f"{ADMIN}stock/"))
    headings = [(one.tag, one.words) for one in found.elements if one.tag in ("h1", "h2", "h3")]
    assert headings == [("h1", "Stock"), ("h2", "Parts"), ("h2", "Left"), ("h2", "Actions")]
    assert {one.words for one in found.find("a", aria_current="page")} == {"Stock"}
    assert len(found.find("rect")) == 2


def test_every_field_has_a_label_and_every_header_a_scope(stock, boss):
    found = page(boss.get(f"{ADMIN}stock/"))
    labelled = {one.attributes["for"] for one in found.find("label")}
    fields = [one for one in found.elements if one.tag in ("input", "select")]
    shown = [one for one in fields if one.attributes.get("type") != "hidden"]
    assert shown
    assert all(one.attributes["id"] in labelled for one in shown)
    assert all("scope" in one.attributes for one in found.find("th"))
    for svg in found.find("svg", role="img"):
        ids = (svg.attributes["aria-labelledby"] or "").split()
        assert all(any(one.attributes.get("id") == name and one.words for one in found.elements) for name in ids)


def test_ids_are_unique(stock, boss):
    for url in PAGES:
        ids = [one.attributes["id"] for one in whole_page(boss.get(url)).elements if "id" in one.attributes]
        assert len(ids) == len(set(ids))


def test_pages_have_no_inline_script_or_style(stock, boss):
    for url in PAGES:
        found = whole_page(boss.get(url))
        assert not found.find("style")
        assert all(one.attributes.get("src") for one in found.find("script"))
        names = {name for one in found.elements for name in one.attributes}
        assert not [name for name in names if name == "style" or name.startswith("on")]


def test_refreshes_are_not_page_views(stock, boss, settings):
    settings.MIDDLEWARE = ["redis_kit.pageviews.middleware.PageViewMiddleware", *settings.MIDDLEWARE]
    for url in (ADMIN, *FRAGMENTS):
        assert boss.get(url, headers={"user-agent": BROWSER}).status_code == 200
    assert flush()
    assert PageViews.site().views() == 1


@pytest.mark.parametrize("url", FRAGMENTS)
def test_unchanged_fragment_answers_304(stock, boss, url):
    first = boss.get(url)
    assert first.headers["ETag"]
    again = boss.get(url, headers={"if-none-match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    parts.MIRROR.append(Figure("New", 1))
    stock.client.hset(parts.key("stock"), "bolt", 50)
    changed = boss.get(url, headers={"if-none-match": first.headers["ETag"]})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]


def test_page_is_drawn_again_only_if_it_differs(stock, boss, signed_in, monkeypatch):
    drawn = []
    monkeypatch.setattr(collect, "render_to_string", lambda *given: drawn.append(1) or render_to_string(*given))
    url = f"{ADMIN}stock/fragment/"
    first = boss.get(url).content
    drawn.clear()
    assert boss.get(url).content == first
    assert not drawn
    with translation.override("zh-hans"):
        assert boss.get(url).content != first
    assert b"sell" not in signed_in("view_dashboard").get(url).content
    stock.client.hincrby(parts.key("stock"), "nut", 1)
    drawn.clear()
    assert boss.get(url).content != first
    assert len(drawn) == 1


def test_page_carries_the_fragment_and_its_etag(stock, boss):
    for url in PAGES:
        fragment = boss.get(f"{url}fragment/")
        response = boss.get(url)
        assert fragment.content in response.content
        (live,) = page(response).find("div", id="rk-live")
        assert live.attributes["data-etag"] == fragment.headers["ETag"]
        assert live.attributes["data-url"] == f"{url}fragment/"


def test_interval_of_the_settings_is_selected(stock, boss):
    stock.options(DASHBOARD={"REFRESH": 7})
    (pace,) = [one for one in page(boss.get(ADMIN)).find("select") if one.attributes["id"] == "rk-pace"]
    assert pace.words == "every 2 s every 5 s every 7 s every 10 s every 30 s off"
    (chosen,) = [one for one in page(boss.get(ADMIN)).find("option") if "selected" in one.attributes]
    assert chosen.attributes["value"] == "7"


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(
    "slug", ["nothing", "<script>alert(1)</script>", "%00", "a" * 5000, "☃", "%2e%2e%2f", "fragment/fragment"]
)
def test_unknown_panel_is_404_and_its_name_inert(stock, boss, settings, slug, debug):
    settings.DEBUG = debug
    for url in (f"{ADMIN}{slug}/", f"{ADMIN}{slug}/fragment/"):
        response = boss.get(url)
        assert response.status_code == 404, url
        assert "<script>alert" not in response.content.decode()


def test_slug_with_an_underscore_is_found_from_the_log_as_well(stock, boss, monkeypatch):
    monkeypatch.setattr(parts.MirrorPanel, "slug", "my_mirror")
    assert boss.get(f"{ADMIN}my_mirror/").status_code == 200
    assert boss.get(f"{ADMIN}my_5Fmirror/").status_code == 200


def test_pages_are_read_only(stock, boss):
    for url in PAGES + FRAGMENTS:
        assert boss.post(url).status_code == 405
        assert boss.put(url).status_code == 405


def test_failing_panel_shows_its_error_in_place(stock, boss):
    parts.MIRROR[:] = [Figure("Before", 41), KeyConflict("wrong <b>type</b>"), Figure("After", 42)]
    for url in (ADMIN, f"{ADMIN}mirror/"):
        found = page(boss.get(url))
        assert [one.words for one in found.find("p", class_="rk-error")] == ["wrong <b>type</b>"]
        assert not found.find("section", class_="rk-error")
        assert ("41" in [one.words for one in found.find("dd")]) == (url != ADMIN)  # a tile is whole or missing
    assert "7 Alarm" in [one.words for one in page(boss.get(ADMIN)).find("dd")]


def test_panel_that_an_outage_cut_short_shows_what_it_has(stock, boss):
    parts.MIRROR[:] = [Figure("Before", 41), RedisUnavailable("gone <b>away</b>"), Figure("After", 42)]
    found = page(boss.get(f"{ADMIN}mirror/"))
    assert [one.words for one in found.find("p", class_="rk-error")] == ["gone <b>away</b>"]
    found = page(boss.get(ADMIN))
    (box,) = found.find("section", class_="rk-error")
    assert box.words == f"Redis is unavailable gone <b>away</b> {MISSING} Mirror"
    assert [one.words for one in found.find("dd")] == ["7 Alarm", "of all parts"]


def test_overview_has_one_box_for_a_connection_that_is_unavailable(own_kit, own_panels, boss):
    own_kit.options(EXTRA_COMPONENTS=["tests.dashboard.support.parts.Parts"] * 3)
    parts.MIRROR[:] = [lambda: Figure("Pong", parts.call("PING"))]
    own_kit.server.stop()
    texts = []
    for _attempt in range(2):  # the second one meets the open breaker
        found = page(boss.get(ADMIN))
        (box,) = found.find("section", class_="rk-error")
        assert box.words.endswith(f"{MISSING} {' '.join(['Stock', 'Mirror'] * 3)}")
        assert box.words.startswith("The Redis connection “default” is unavailable Redis can't be reached (")
        assert [one.words for one in found.find("h2")][1:] == []
        assert not found.find("section", class_="rk-attention")
        assert {f"{ADMIN}stock/", f"{ADMIN}mirror/"} <= {one.attributes["href"] for one in found.find("a")}
        texts.append(box.words)
    assert texts[0] == texts[1]
    with translation.override("zh-hans"):
        (box,) = page(boss.get(ADMIN)).find("section", class_="rk-error")
    assert box.words.startswith("Redis 连接“default”不可用 无法连接 Redis (")


def test_box_names_only_the_panels_of_its_connection(stock, boss):
    nobody = {"URL": "redis://:sesame-open@127.0.0.1:1/0", "TEST": True}
    stock.options(CONNECTIONS={**stock.settings.REDIS_KIT["CONNECTIONS"], "other": nobody})
    parts.MIRROR[:] = [lambda: Figure("Pong", connections.client("other").call("PING"))]
    found = page(boss.get(ADMIN))
    (box,) = found.find("section", class_="rk-error")
    assert box.words.startswith("The Redis connection “other” is unavailable")
    assert box.words.endswith(f"{MISSING} Mirror")
    assert "sesame" not in box.words
    assert [one.words for one in found.find("h2")][1:] == ["Needs attention", "Stock"]


@pytest.mark.parametrize("wrong", [ZeroDivisionError(), "no content", Table("Uneven", ("A", "B"), [("only one",)])])
def test_defect_of_a_panel_is_logged_and_the_others_are_shown(stock, boss, caplog, wrong):
    parts.MIRROR[:] = [wrong]
    found = page(boss.get(f"{ADMIN}mirror/"))
    assert [one.words for one in found.find("p", class_="rk-error")] == ["This panel failed. See the log."]
    assert "7 Alarm" in [one.words for one in page(boss.get(ADMIN)).find("dd")]
    assert "The panel MirrorPanel failed." in caplog.text
    assert "Traceback" in caplog.text


def test_dashboard_adds_no_round_trip_to_those_of_the_panels(stock, boss, commands):
    for url in (ADMIN, f"{ADMIN}fragment/", f"{ADMIN}stock/", f"{ADMIN}stock/fragment/"):
        with commands(stock) as sent:
            assert boss.get(url).status_code == 200
        assert sent == ["HGETALL"]
    with commands(stock) as sent:
        boss.get(f"{ADMIN}mirror/")
    assert sent == []


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_page_waits_for_three_answers_at_most_in_an_outage(own_kit, own_panels, boss, unanswered, how):
    own_kit.options(EXTRA_COMPONENTS=["tests.dashboard.support.parts.Parts"])
    parts.MIRROR[:] = [lambda: Figure("Pong", parts.call("PING"))]
    assert b"Pong" in boss.get(ADMIN).content
    getattr(own_kit.server, how)()
    try:
        for url in [*PAGES, *FRAGMENTS]:
            connections.close()  # so that no breaker is open yet
            unanswered.clear()
            assert b"rk-error" in boss.get(url).content
            assert 1 <= len(unanswered) <= 3
    finally:
        own_kit.server.thaw() if how == "freeze" else None


@pytest.mark.parametrize("is_alone", [True, False])
def test_panels_that_are_left_when_a_server_hung_are_skipped(own_kit, own_panels, boss, monkeypatch, is_alone):
    many = ["tests.dashboard.support.parts.Parts"] * 10
    known = own_kit.settings.REDIS_KIT["CONNECTIONS"]
    own_kit.options(EXTRA_COMPONENTS=many, CONNECTIONS=known if is_alone else {**known, "other": known["default"]})
    # Far fewer failures than would open the breaker are enough to use up a second.
    monkeypatch.setattr("redis_kit.core.client.breaker.FAILURES", 1000)
    assert boss.get(ADMIN).status_code == 200
    parts.ASKED.clear()
    own_kit.server.freeze()
    try:
        fragment = page(boss.get(f"{ADMIN}fragment/"))
    finally:
        own_kit.server.thaw()
    boxes = [box.words for box in fragment.find("section", class_="rk-error")]
    assert len(boxes) == (1 if is_alone else 2)
    assert sum(box.count("Stock") + box.count("Mirror") for box in boxes) >= 19  # an empty mirror asks nothing
    if not is_alone:
        assert boxes[1].startswith("A server did not answer in time, so these parts were skipped: ")
        assert boxes[1].count("Stock") >= 8
    assert 1 < len(parts.ASKED) < 10


def test_page_that_asks_no_server_is_not_among_those_that_are_skipped(own_kit, monkeypatch):
    monkeypatch.setattr(collect, "TIME_LIMIT", 0.0)
    own_kit.server.stop()
    views = collect.tiles([WorkersPanel(), KeysPanel(), AuditPanel()])
    assert [view.panel.slug for view in views if view.outage or view.skipped] == ["workers", "keys"]


def test_page_recovers_with_the_server(own_kit, own_panels, boss):
    own_kit.options(EXTRA_COMPONENTS=["tests.dashboard.support.parts.Parts"])
    own_kit.server.stop()
    assert page(boss.get(f"{ADMIN}stock/")).find("p", class_="rk-error")
    own_kit.server.start()
    connections.close()
    assert not page(boss.get(f"{ADMIN}stock/")).find("p", class_="rk-error")


def test_password_of_a_connection_is_in_no_page(stock, boss):
    stock.connect(
        {"URL": "redis://:sesame-open@127.0.0.1:1/0"}, EXTRA_COMPONENTS=["tests.dashboard.support.parts.Parts"]
    )
    for url in PAGES + FRAGMENTS:
        assert b"sesame" not in boss.get(url).content


def test_pages_speak_the_language_of_their_viewer(stock, boss):
    with translation.override("zh-hans"):
        text = boss.get(f"{ADMIN}stock/").content.decode()
    assert "需要注意" not in text
    assert "数据" in text
    assert "Refresh" not in text


def test_migrations_are_complete(db, capsys):
    call_command("makemigrations", "redis_kit", check=True, dry_run=True)
    assert "No changes" in capsys.readouterr().out
