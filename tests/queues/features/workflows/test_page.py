"""The page of workflows: the list, the drawing of one, its steps, and buttons."""

import pytest
from asgiref.sync import async_to_sync

from redis_kit.core import component
from redis_kit.core.panels import Figure
from redis_kit.queues import Queue, chain, failures, group, previous
from redis_kit.queues.features.workflows import page as workflows
from redis_kit.queues.features.workflows import store
from redis_kit.queues.features.workflows.page import WorkflowsPanel, drawing
from redis_kit.queues.features.workflows.step import StepCall
from redis_kit.queues.features.workflows.store import list_key
from redis_kit.queues.features.workflows.workflow import read_nodes
from redis_kit.testing.jobs import drain
from tests.dashboard.support.attacks import FEW, harmless_links, without_titles
from tests.dashboard.support.html import page, row_buttons, rows, said, whole_page
from tests.fixtures.dashboard import ADMIN, layout_problems
from tests.queues.support import workflow_tasks
from tests.queues.support.workflow_tasks import ran, report, split, work

pytestmark = pytest.mark.once

PAGE = f"{ADMIN}workflows/"
URLS = {name: f"{PAGE}do/{name}/" for name in ("cancel", "retry")}


@pytest.fixture
def failed(kit):
    """A workflow in which one step of a large group failed."""
    ran.clear()
    workflow_tasks.broken.clear()
    workflow_tasks.broken.add(3)
    members = group(work.step(number) for number in range(20))
    workflow = chain(work.step("first"), members.on_done(report.step(previous, failures)), work.step("last")).enqueue()
    drain()
    return workflow


@pytest.fixture
def waiting(kit):
    """A workflow that has just started."""
    return chain(work.step(1), group(work.step(2), chain(work.step(3), work.step(4))), work.step(5)).enqueue()


def drawn(workflow):
    graph = drawing(workflow.run_flow(read_nodes(workflow))[1])
    return graph, [(str(box.name), str(box.note), box.column, box.tone) for box in graph.boxes]


def test_large_group_is_one_box_with_counts(failed):
    graph, boxes = drawn(failed)
    assert boxes == [
        ("work", "successful", 0, "good"),
        ("20 steps", "19 done, 1 failed", 1, "bad"),
        ("report", "successful", 2, "good"),
        ("work", "successful", 3, "good"),
    ]
    assert sorted(graph.arrows) == [(0, 1), (1, 2), (2, 3)]
    assert graph.summary == "failed: 1, successful: 22"


def test_small_groups_and_chains_are_drawn_step_by_step(waiting):
    graph, boxes = drawn(waiting)
    assert [column for *_, column, _ in boxes] == [0, 1, 1, 2, 3]
    assert sorted(graph.arrows) == [(0, 1), (0, 2), (1, 4), (2, 3), (3, 4)]
    assert boxes[0] == ("work", "in its queue", 0, "active")


def test_added_steps_follow_their_step(kit):
    workflow = chain(split.step(2), work.step(9)).enqueue()
    drain()
    graph, _ = drawn(workflow)
    assert sorted(graph.arrows) == [(0, 2), (0, 3), (2, 1), (3, 1)]


def test_what_is_too_large_is_told_in_words(kit):
    several = [group(work.step(number) for number in range(7)) for _ in range(10)]
    graph, boxes = drawn(chain(several).enqueue())
    assert (boxes, graph.summary[:19]) == ([], "Too large to be dra")


def test_list_links_to_the_page_of_each(failed, waiting, boss):
    pytest.importorskip("redis_kit.queues.features.results.feature")
    found = page(boss.get(PAGE))
    assert [each["Steps done"] for each in rows(found, "Workflows")] == ["0 of 5", "22 of 23"]
    assert {("cancel", waiting.id), ("retry", failed.id)} <= {(name, head) for name, head in row_buttons(found)}
    text = boss.get(PAGE, {"id": failed.id}).content.decode()
    assert "19 done, 1 failed" in text
    assert "ValueError: 3" in text
    assert rows(page(boss.get(PAGE, {"id": failed.id})), "Steps")[0]["State"] == "failed"
    job = {"queue": "default", "id": failed.steps()[3].id}
    assert f"Workflow {failed.id}" in boss.get(f"{ADMIN}queues/", job).content.decode()
    assert "There is no workflow nobody" in boss.get(PAGE, {"id": "nobody"}).content.decode()
    assert boss.get(PAGE, {"id": "no/id"}).status_code == 200


def test_step_that_failed_late_in_a_large_workflow_is_on_its_page(kit, boss):
    workflow = async_to_sync(group(work.step(number) for number in range(2100)).aenqueue)()
    workflow.run_flow(store.fail(StepCall(workflow.id, 2099), "ValueError: 2099"))
    graph, boxes = drawn(workflow)
    assert boxes == [("2100 steps", "0 done, 1 failed", 0, "bad")]
    assert graph.summary == "failed: 1, in its queue: 2099"
    first, second, *_ = rows(page(boss.get(PAGE, {"id": workflow.id})), "Steps: the first 100 of 2100")
    assert (first["State"], first["Error"], second["State"]) == ("failed", "ValueError: 2099", "in its queue")


def test_steps_that_wait_say_that_they_will_not_run_after_the_end(kit, boss):
    workflow_tasks.broken.clear()
    workflow_tasks.broken.add(1)
    parts = chain(work.step(1), work.step(2))
    failed = async_to_sync(parts.aenqueue)()
    drain()
    cancelled = async_to_sync(parts.aenqueue)()
    assert cancelled.cancel()
    for workflow, state in ((failed, "failed"), (cancelled, "cancelled")):
        found = page(boss.get(PAGE, {"id": workflow.id}))
        assert [each["State"] for each in rows(found, "Steps")] == [state, "will not run"]
        assert found.find("desc")[0].words == f"{state}: 1, will not run: 1"


def test_failed_workflow_is_an_alarm_and_a_cancelled_one_is_none(failed, waiting):
    assert waiting.cancel()
    drain()
    assert (failed.status().failed, waiting.status().failed > 0) == (1, True)
    figures = [(item.value, item.alarm) for item in WorkflowsPanel().content() if isinstance(item, Figure)]
    assert figures == [(0, False), (1, True)]


def test_buttons_cancel_and_retry(failed, waiting, boss):
    pytest.importorskip("redis_kit.queues.features.cancel")
    values = row_buttons(page(boss.get(PAGE)))
    workflow_tasks.broken.clear()
    given = {"row": values["retry", failed.id], "confirmed": "1"}
    assert said(boss.post(URLS["retry"], given)) == [f"Retried 1 step of {failed.id}."]
    given = {"row": values["cancel", waiting.id], "confirmed": "1"}
    assert said(boss.post(URLS["cancel"], given))[-1] == f"Cancelled: workflow {waiting.id}."
    assert "has ended" in said(boss.post(URLS["cancel"], given))[-1]
    drain()
    given = {"row": values["retry", failed.id], "confirmed": "1"}
    assert "has ended" in said(boss.post(URLS["cancel"], given))[-1]
    assert (failed.status().state, waiting.status().state) == ("successful", "cancelled")


@pytest.mark.parametrize("name", URLS)
def test_permission_token_and_post_are_required(failed, boss, signed_in, name):
    given = {"row": failed.id, "confirmed": "1"}
    viewer = signed_in("view_dashboard")
    assert viewer.post(URLS[name], given).status_code == 403
    assert signed_in("superuser", enforce_csrf_checks=True).post(URLS[name], given).status_code == 403
    assert boss.get(URLS[name], given).status_code == 302
    text = viewer.get(PAGE, {"id": failed.id}).content.decode()
    assert "need the permission to manage queues" in text
    assert "ValueError" not in text


def test_list_of_many_costs_two_round_trips_and_hides_what_expired(kit, boss, trips):
    many = [async_to_sync(chain(work.step(1)).aenqueue)() for _ in range(120)]
    kit.client.delete(many[5].key("meta"))
    kit.client.zadd(list_key("listed"), {many[5].id: 5})
    list(WorkflowsPanel().content())
    trips.clear()
    list(WorkflowsPanel().content())
    assert len(trips) == 2
    listing = Queue("default").run_flow(workflows.read(100, 100))
    assert (len(listing.workflows), listing.total) == (19, 120)
    for number in ("2", "999"):
        found = page(boss.get(PAGE, {"page": number}))
        assert len(rows(found, "Workflows")) == 19
        assert "Page 2 of 2" in found.find("nav", class_="rk-pages")[0].words


def test_figures_of_many_say_how_many_workflows_they_count(failed, waiting, monkeypatch):
    monkeypatch.setattr(workflows, "MOST_ROWS", 1)
    panel = WorkflowsPanel()
    for figures in (
        list(panel.content())[:2],
        panel.tile({"default": Queue("default").run_flow(panel.reads()["default"])}).figures,
    ):
        assert [(item.value, item.alarm) for item in figures] == [(1, False), (0, False)]
        assert {item.hint for item in figures} == {"among 1 of 2"}


def test_page_about_a_large_workflow_takes_few_round_trips(kit, trips, boss):
    workflow = async_to_sync(group(work.step(number) for number in range(1000)).aenqueue)()
    boss.get(PAGE, {"id": workflow.id})  # loads the scripts
    trips.clear()
    assert "Steps: the first 100 of 1000" in boss.get(PAGE, {"id": workflow.id}).content.decode()
    assert len(trips) <= 6


@pytest.mark.parametrize("attack", FEW)
def test_workflows_can_put_nothing_into_the_page(failed, boss, kit, attack):
    kit.client.hset(failed.key("meta"), "name", attack)
    kit.client.hset(failed.key("errors"), 5, attack)
    for response in (boss.get(PAGE), boss.get(PAGE, {"id": failed.id})):
        found = whole_page(response)
        assert harmless_links(found)
        assert "onerror" not in str(without_titles(found.shape))


def test_damaged_workflow_does_not_take_the_list_with_it(failed, waiting, kit, boss):
    kit.client.delete(waiting.key("meta"))
    kit.client.rpush(waiting.key("meta"), "x")
    assert len(rows(page(boss.get(PAGE)), "Workflows")) == 1
    assert boss.get(PAGE, {"id": waiting.id}).status_code == 200


def test_page_fits_wide_and_narrow_screens_light_and_dark(visit, monkeypatch, failed, waiting):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)
    assert Queue("default").counts().ready

    def look(browser):
        for address in (PAGE, f"{PAGE}?id={failed.id}", f"{PAGE}?id={waiting.id}"):
            browser.goto(address)
            assert layout_problems(browser) == []

    visit(look)
