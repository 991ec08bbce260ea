"""The page of workers: supervisors, their processes and jobs, and the commands to a supervisor."""

import json
import re
from types import SimpleNamespace

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import translation

from redis_kit.core import component, connections
from redis_kit.queues import Queue, task
from redis_kit.queues.dashboard import workers_page
from redis_kit.queues.dashboard.actions import SupervisorTarget
from redis_kit.queues.engine import calls
from redis_kit.queues.inspection import list_workers
from tests.dashboard.support.attacks import FEW, harmless_links, without_titles
from tests.dashboard.support.html import page, rows, said, whole_page
from tests.fixtures.dashboard import ADMIN, layout_problems

PAGE = f"{ADMIN}workers/"
URLS = {name: f"{PAGE}do/{name}/" for name in ("quiet", "resume", "stop")}


@task(queue_name="mail", enqueue_on_commit=False)
def send(user):
    """A task that nobody runs here."""


def heartbeat(worker, queue="mail", **about):
    """Beat for a worker that says this of itself; return its orders."""
    said = {"host": "web1", "pid": 7, "supervisor": "s1", "supervisor_pid": 5, "threads": 4, **about}
    call = calls.heartbeat(Queue(queue).key(""), worker, json.dumps(said))
    return call.run(connections.client())[2].decode()


@pytest.fixture
def four_workers(kit):
    """Two worker processes of one supervisor, one of another, and a program that claims jobs by itself."""
    kit.options(QUEUES={"NAMES": ["mail", "news"]})
    mail = Queue("mail")
    for queue in ("mail", "news"):
        heartbeat("w1", queue, state="working", memory=100)
        heartbeat("w2", queue, pid=8, state="working", memory=51)
    heartbeat("w3", pid=9, host="web2", supervisor="s2", supervisor_pid=6, state="quiet", memory=49)
    mail.put("x", id="plain")
    mail.claim(worker="w1")
    mail.put("x", id="mine")
    mail.claim(worker="alone")
    return mail


def press(client, name, value, **given):
    return client.post(URLS[name], {"row": value, "confirmed": "1", **given})


def values(client):
    found = page(client.get(PAGE)).find("button", formaction=URLS["stop"])
    return {one.attributes["aria-label"]: one.attributes["value"] for one in found}


def test_supervisors_are_shown_with_their_processes(four_workers, boss):
    found = page(boss.get(PAGE))
    one, two = rows(found, "Supervisors")
    assert (one[""], one["State"], one["Processes"], one["Threads"]) == ("web1, process 5", "working", "2", "8")
    assert (one["Queues"], one["Jobs"], one["Memory (MiB)"]) == ("mail, news", "1", "151")
    assert (two[""], two["State"], two["Memory (MiB)"]) == ("web2, process 6", "quiet", "49")
    first, second, third, alone = rows(found, "Workers")
    assert (first[""], first["Jobs"], first["Memory (MiB)"]) == ("w1 process 7", "plain", "100")
    assert (second[""], second["Jobs"], second["State"]) == ("w2 process 8", "–", "working")
    assert (first["Host"], third["Host"]) == ("web1 of supervisor process 5", "web2 of supervisor process 6")
    assert (alone[""].split(" ")[0], alone["Jobs"]) == ("alone", "mine")
    assert "supervisor" not in alone["Host"]
    figures = dict(zip([x.words for x in found.find("dt")], [x.words for x in found.find("dd")], strict=False))
    assert figures["Workers"] == "4"


def test_jobs_are_shown_with_task_and_age_and_lead_to_their_pages(four_workers, signed_in):
    result = send.enqueue(7)
    four_workers.claim(worker="w2")
    found = page(signed_in("view_dashboard", "manage_queues").get(PAGE))
    (link,) = [one for one in found.find("a") if result.id in one.attributes.get("href", "")]
    name, age = link.words.split(", ")
    assert name == f"{__name__}.send"
    assert re.fullmatch(r"[\d.]+ m?s", age)
    assert link.attributes["href"] == f"{ADMIN}queues/?queue=mail&id={result.id}"
    found = page(signed_in("view_dashboard").get(PAGE))
    assert not [one for one in found.find("a") if name in one.words]
    assert any(name in one.words for one in found.elements)


def test_many_jobs_of_one_worker_are_summed_up(four_workers, boss):
    four_workers.put_many(range(30))
    four_workers.claim(25, worker="w2")
    (row,) = [one for one in rows(page(boss.get(PAGE)), "Workers") if one[""].startswith("w2")]
    assert row["Jobs"].endswith("and 15 more")


def test_supervisor_gets_quiet_at_once_and_stop_after_a_confirmation(four_workers, boss):
    value = values(boss)["Stop: web1, process 5"]
    response = boss.post(URLS["quiet"], {"row": value})
    assert said(response) == ["Quiet: web1, process 5 finishes its jobs and claims no more."]
    assert {heartbeat(worker, queue) for worker in ("w1", "w2") for queue in ("mail", "news")} == {"quiet"}
    assert heartbeat("w3", supervisor="s2") == ""
    assert boss.post(URLS["stop"], {"row": value}).status_code == 200
    assert heartbeat("w1") == ""
    response = press(boss, "stop", value, reason="upgrade")
    assert said(response)[-1] == "Stopping: web1, process 5 finishes its jobs and exits."
    assert heartbeat("w1") == "stop"
    texts = {entry.get_change_message() for entry in LogEntry.objects.all()}
    assert len(texts) == 2
    assert "Stop: web1, process 5 – Stopping: web1, process 5 finishes its jobs and exits. Reason: upgrade" in texts


def test_buttons_fit_the_state_and_a_quiet_supervisor_can_resume(four_workers, boss):
    heartbeat("w4", supervisor="s4", supervisor_pid=4, state="stopping")
    found = [one.attributes["aria-label"] for one in page(boss.get(PAGE)).find("button") if one.attributes.get("value")]
    labels = {label.partition(": ")[::2] for label in found if ": " in label}
    one, two = "web1, process 5", "web2, process 6"
    assert labels == {("Quiet", one), ("Stop", one), ("Resume", two), ("Stop", two)}
    assert said(boss.post(URLS["resume"], {"row": "web2/6/s2"})) == [f"Resumed: {two} claims jobs again."]
    assert heartbeat("w3", supervisor="s2") == "resume"


def test_dead_supervisor_has_no_buttons(four_workers, boss, kit):
    for name in ("mail", "news"):
        kit.client.zadd(Queue(name).key("workers"), {"w1": 1, "w2": 1}, xx=True)
    found = [one.attributes["aria-label"] for one in page(boss.get(PAGE)).find("button") if one.attributes.get("value")]
    assert [label for label in found if "web1, process 5" in label] == []
    assert [label for label in found if "web2, process 6" in label] != []


def test_new_information_of_a_worker_is_stored_with_its_heartbeat_alone(four_workers, kit):
    def stored():
        return kit.client.hget(four_workers.key("info"), "w1")

    before = stored().split(" ")[0]
    for queue in ("mail", "news"):
        heartbeat("w1", queue, state="quiet", memory=120)
    assert json.loads(stored().partition(" ")[2])["memory"] == 120
    assert stored().split(" ")[0] == before
    (found,) = [one for one in list_workers() if one.id == "w1"]
    assert (found.state, found.memory, found.supervisor) == ("quiet", 120, "s1")


def test_workers_that_do_not_respond_and_lost_ones_are_alerts(four_workers, boss, kit):
    heartbeat("w1", state="working", unresponsive=85)
    lost = four_workers.key("lost")
    seconds = kit.client.time()[0]
    kit.client.hset(lost, mapping={f"l{age}": f"{seconds - age}000 3 17 15 web7" for age in (60, 7200, 90_000)})
    found = page(boss.get(PAGE))
    row = next(one for one in rows(found, "Workers") if one[""].startswith("w1"))
    assert row["State"] == "does not respond for 1 min 25 s"
    recent, older = rows(found, "Lost workers of the last 24 hours")
    assert (recent[""], recent["Host"]) == ("l60 process 17", "web7 of supervisor process 15")
    assert (recent["Queues"], recent["Jobs that others took"]) == ("mail", "3")
    assert older[""].startswith("l7200")
    (box,) = page(boss.get(ADMIN)).find("section", class_="rk-attention")
    assert "Workers that do not respond 1 · web1, process 7: stopped by a signal, or a job holds" in box.words
    assert "Workers lost in the last hour 1 · They ended without signing off: web7, process 17." in box.words


NO_SUPERVISORS = (
    "",
    "junk",
    "web1/5/s9",
    "web2/5/s1",
    "web1/6/s1",
    "web1//s1",
    "web1/5/",
    "a/b/c",
    "%ff/5/s1",
    "web1/5/s1/x",
)


@pytest.mark.parametrize("name", URLS)
def test_value_of_no_supervisor_does_no_harm(four_workers, boss, name):
    for value in NO_SUPERVISORS:
        assert press(boss, name, value).status_code == 302, value
        assert {heartbeat("w1"), heartbeat("w2"), heartbeat("w3", supervisor="s2")} == {""}, value
        assert not LogEntry.objects.exists(), value


@pytest.mark.parametrize("codenames", [("view_dashboard",), ("manage_queues",)])
@pytest.mark.parametrize("name", URLS)
def test_permission_is_needed(four_workers, signed_in, name, codenames):
    client = signed_in(*codenames)
    assert press(client, name, "web1/5/s1").status_code == 403
    assert heartbeat("w1") == ""
    assert not LogEntry.objects.exists()
    if "view_dashboard" in codenames:
        assert values(client) == {}


@pytest.mark.parametrize("name", URLS)
def test_token_and_post_are_required(four_workers, boss, signed_in, name):
    strict = signed_in("superuser", enforce_csrf_checks=True)
    assert press(strict, name, "web1/5/s1").status_code == 403
    assert boss.get(URLS[name], {"row": "web1/5/s1"}).status_code == 302
    assert heartbeat("w1") == ""


def test_page_takes_two_round_trips(four_workers, trips):
    from redis_kit.queues.dashboard.workers_page import WorkersPanel

    list(WorkersPanel().content())  # the server learns the scripts
    trips.clear()
    list(WorkersPanel().content())
    assert len(trips) == 2


@pytest.mark.parametrize("attack", FEW)
def test_workers_can_put_nothing_into_the_page(kit, signed_in, attack):
    kit.options(QUEUES={"NAMES": ["mail"]})
    mail, client = Queue("mail"), signed_in("superuser")
    heartbeat("w1", host=attack, supervisor=attack, state=attack, queues=attack)
    heartbeat("w2", host=attack, supervisor="s2")
    kit.client.hset(mail.key("jobs"), attack, f'0 1 0 5\n~1/1/x 5/w\n{{"task":{json.dumps(attack)}}}')
    kit.client.zadd(mail.key("running"), {f"w1/c.1/0/{attack}": 0})
    heartbeat(attack.replace("/", "").replace("\0", "") or "x")
    found = [whole_page(client.get(PAGE)), whole_page(client.get(ADMIN))]
    assert values(client)
    for value in values(client).values():
        found.append(whole_page(client.post(URLS["stop"], {"row": value}, follow=True)))
        found.append(whole_page(client.post(URLS["quiet"], {"row": value}, follow=True)))
    for one in found:
        assert harmless_links(one)
        shape = str(without_titles(one.shape))
        assert "onerror" not in shape
        assert "'b'" not in shape


def test_hundred_workers_make_one_page(kit, boss):
    kit.options(QUEUES={"NAMES": ["mail"]})
    for number in range(110):
        heartbeat(f"w{number}", supervisor=f"s{number // 2}", supervisor_pid=number // 2, host="web")
    found = page(boss.get(PAGE))
    assert not found.find("p", class_="rk-error")
    assert len(rows(found, "Supervisors")) >= 50


def test_page_is_in_the_language_of_its_viewer(four_workers, boss):
    with translation.override("zh-hans"):
        words = boss.get(PAGE).content.decode().partition("<main")[2]
    for one in (
        "Supervisor",
        "Processes",
        "Memory",
        "Quiet",
        "Resume",
        "Stop",
        "Threads",
        "quiet<",
    ):
        assert one not in words
    assert "主管进程" in words


@pytest.mark.once
def test_supervisor_is_stopped_with_the_keyboard(visit, monkeypatch, four_workers):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)
    four_workers.put_many(range(30))
    four_workers.claim(25, worker="w2")

    def see(page):
        page.wait_for_selector("#rk-refresh:visible")
        assert layout_problems(page) == []
        page.get_by_role("button", name="Stop: web1, process 5").press("Enter")
        page.wait_for_selector(".rk-confirm")
        assert layout_problems(page) == []
        page.get_by_role("button", name="Stop", exact=True).press("Enter")
        page.wait_for_selector(".messagelist")

    visit(see, start=PAGE)
    assert heartbeat("w1") == "stop"


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (["dead", "dead"], "dead"),
        (["dead", "working"], "working"),
        (["quiet", "working"], "working"),
        (["quiet", "stopping"], "stopping"),
        (["dead", ""], ""),
        (["unresponsive", "working"], "working"),
        (["unresponsive", "dead"], "unresponsive"),
    ],
)
def test_supervisor_has_the_state_of_its_workers(states, shown):
    workers = [SimpleNamespace(state=state) for state in states]
    assert workers_page.Supervisor(SupervisorTarget("web1", 5, "s1"), workers).state == shown


@pytest.mark.parametrize(("states", "shown"), [(["working", "dead"], [1, 1]), (["working", "quiet"], [2])])
def test_dead_workers_are_an_alarm_and_do_not_count_as_workers(states, shown):
    workers = [SimpleNamespace(state=state, running=0, memory=None) for state in states]
    figures = {str(figure.label): figure for figure in workers_page.figures(workers, [])}
    found = [figures[title] for title in ("Workers", "Dead workers") if title in figures]
    assert [figure.value for figure in found] == shown
    assert [figure.alarm for figure in found] == [False, True][: len(shown)]
