"""The page about the servers."""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from redis_kit.core import connections
from tests.dashboard.support.html import page
from tests.fixtures.dashboard import ADMIN
from tests.fixtures.process import wait_for

PAGE = f"{ADMIN}server/"


def test_page_shows_the_same_advice_as_the_command(filled, boss, shell):
    found = page(boss.get(PAGE))
    headings = [one.words for one in found.find("h2")]
    assert headings == ["Advice", "Memory by component", f"Server {filled.url}", "Slow log"]
    text = " ".join(one.words for one in found.find("td"))
    lines = shell("rk_doctor")[1].splitlines()
    advised = [line.removeprefix("    -> ") for line in lines if line.startswith("    -> ")]
    advised += [line.partition(": ")[2] for line in lines if line.startswith(("  ERROR: ", "  WARNING: ", "  NOTE: "))]
    assert len(advised) >= 4
    assert [line for line in advised if line not in text] == []


def test_page_has_the_advice_about_sentinels(kit, sentinel, boss):
    kit.server = sentinel
    kit.connect({**sentinel.connection, "SENTINELS": [*sentinel.connection["SENTINELS"], ["127.0.0.1", 1]]})
    cells = [cell.words for cell in page(boss.get(PAGE)).find("td")]
    (at,) = [at for at, cell in enumerate(cells) if cell.startswith("These Sentinels do not answer: 127.0.0.1:1 (")]
    remedy = "Start them, remove them from SENTINELS, or give their password in SENTINEL_KWARGS."
    assert cells[at + 1 : at + 3] == [remedy, "Sentinels"]


def test_page_has_the_nodes_of_a_cluster_that_answer(kit, cluster, boss):
    kit.server = cluster
    kit.connect(cluster.connection)
    boss.get(PAGE)  # and the nodes are known
    cluster.nodes[0].freeze()
    found = page(boss.get(PAGE))
    cluster.nodes[0].thaw()
    wait_for(lambda: all(map(cluster.is_whole, cluster.nodes)))
    headings = [one.words for one in found.find("h2")]
    assert len([heading for heading in headings if heading.startswith("Server redis://")]) == 2
    text = " ".join(one.words for one in found.find("td"))
    assert f"The server does not answer: Redis can't be reached (redis://127.0.0.1:{cluster.nodes[0].port})" in text


def test_page_costs_two_round_trips_and_little_time(filled, boss, trips):
    boss.get(PAGE)
    trips.clear()
    before = filled.client.info("commandstats")
    boss.get(PAGE)
    assert len(trips) == 2
    after = filled.client.info("commandstats")
    used = sum(after[name]["usec"] - before.get(name, {"usec": 0})["usec"] for name in after)
    assert used < 25_000


def test_page_needs_its_own_permission(kit, signed_in):
    viewer = signed_in("view_dashboard")
    assert viewer.get(PAGE).status_code == 403
    assert viewer.get(f"{PAGE}fragment/").status_code == 403
    overview = viewer.get(ADMIN).content.decode()
    assert "/server/" not in overview
    assert signed_in("view_dashboard", "view_server").get(PAGE).status_code == 200


def test_connection_is_chosen(kit, boss, settings):
    both = {**settings.REDIS_KIT["CONNECTIONS"], "gone": {"URL": "redis://127.0.0.1:1/0", "TEST": True}}
    kit.options(CONNECTIONS=both)
    assert not page(boss.get(PAGE)).find("p", class_="rk-error")
    assert "127.0.0.1:1" in page(boss.get(PAGE, {"connection": "gone"})).find("p", class_="rk-error")[0].words
    wrong = page(boss.get(PAGE, {"connection": "<script>"})).find("p", class_="rk-error")[0].words
    assert wrong == "There is no connection with this name."


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_page_answers_within_a_second_in_an_outage(own_kit, boss, how):
    boss.get(PAGE)
    getattr(own_kit.server, how)()
    connections.close()
    began = monotonic()
    try:
        answer = page(boss.get(PAGE))
    finally:
        own_kit.server.thaw() if how == "freeze" else None
    assert monotonic() - began < 1
    assert len(answer.find("p", class_="rk-error")) == 1


def test_page_answers_while_the_server_loads_its_data(own_kit, boss):
    own_kit.client.mset({f"{own_kit.prefix}:{number}": "x" for number in range(20_000)})
    boss.get(PAGE)  # loads templates
    own_kit.client.config_set("loading-process-events-interval-bytes", 1024)
    own_kit.client.config_set("key-load-delay", 200)
    with own_kit.server.client(socket_timeout=60) as other, ThreadPoolExecutor(1) as thread:
        reload = thread.submit(other.execute_command, "DEBUG", "RELOAD")
        wait_for(lambda: own_kit.client.info("persistence")["loading"])
        began = monotonic()
        answer = page(boss.get(PAGE))
        assert monotonic() - began < 1
        assert "loading the dataset" in answer.find("p", class_="rk-error")[0].words
        own_kit.client.config_set("key-load-delay", 0)
        reload.result()
