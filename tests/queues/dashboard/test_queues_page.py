"""The page of queues: states, pauses, the look-up of a job, dead jobs by cause, and buttons."""

from datetime import datetime, timedelta
from urllib.parse import unquote

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone, translation

from redis_kit.core import component, connections
from redis_kit.core.panels import RANGES
from redis_kit.queues import Queue, QueueCounts
from redis_kit.queues.dashboard import actions, queues_page
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.job import PauseInfo
from redis_kit.queues.features.outbox import transport as outbox
from redis_kit.queues.keys import names_key
from redis_kit.queues.models import OutboxMessage
from redis_kit.queues.reports.stats import queue_stats
from redis_kit.testing.jobs import drain
from tests.dashboard.support.attacks import FEW, harmless_links, without_titles
from tests.dashboard.support.html import page, refused, row_buttons, said, whole_page
from tests.fixtures.dashboard import ADMIN, layout_problems
from tests.queues.support.putting import put

pytestmark = pytest.mark.once

PAGE = f"{ADMIN}queues/"
OF_GROUPS = ("retry_one", "retry_ten", "retry_group")
NAMES = ("pause", "resume", "retry", "run_now", "delete", *OF_GROUPS, "retry_dead")
URLS = {name: f"{PAGE}do/{name}/" for name in NAMES}
TASK = "shop.tasks.send"


def die(reason, times=1, task=TASK):
    """Let jobs of a task die."""
    queue = Queue("mail")
    for _ in range(times):
        id = f"d{queue.counts().dead}"
        put(queue, id, task, (7,), {"password": "hunter2"}, priority=100)
        queue.nack(*queue.claim(), max_attempts=1, error=reason)


@pytest.fixture
def mail(kit):
    """A queue with jobs in all states."""
    queue = Queue("mail")
    die("ValueError: no", 12)
    die("KeyError: 'token=hunter2'")
    queue.put("running", id="running")
    queue.claim(worker="w1")
    queue.put({"note": "hello"}, id="ready")
    queue.put("later", id="later", delay=600)
    return queue


def buttons(client, **asked):
    return row_buttons(page(client.get(PAGE, asked)))


def press(client, name, value, **given):
    """Press the button of a row, and answer the page of confirmation."""
    return client.post(URLS[name], {"row": value, "confirmed": "1", **given})


def entry():
    return LogEntry.objects.get().get_change_message()


def cells(client, **asked):
    return [one.words for one in page(client.get(PAGE, asked)).find("td", role="cell")]


def hints(client, **asked):
    return [one.words for one in page(client.get(PAGE, asked)).find("p", class_="rk-hint")]


def test_page_shows_queues_and_what_jobs_died_of(mail, boss):
    found = page(boss.get(PAGE))
    titles = [one.words for one in found.find("h2")]
    late = ["How late attempts began, on average", "How late attempts began, at most"]
    assert titles == [
        "Queues",
        "Jobs by state",
        "Attempts that ended, per minute",
        *late,
        "Dead jobs by task and error",
    ]
    assert [one.words for one in found.find("th", scope="row") if "role" in one.attributes] == [
        "default",
        "mail",
        f"{TASK} mail",
        f"{TASK} mail",
    ]
    assert "hunter2" not in boss.get(PAGE).content.decode()
    assert not found.find("p", class_="rk-error")


def test_trail_leads_to_the_dashboard_and_to_what_was_looked_up(mail, boss):
    def trail(response):
        (found,) = whole_page(response).find("div", class_="breadcrumbs")
        return found.words

    assert trail(boss.get(ADMIN)) == "Home › Dashboard"
    assert trail(boss.get(PAGE)) == "Home › Dashboard › Queues"
    question = boss.post(f"{URLS['pause']}?queue=mail&id=", {"row": "mail"})
    assert trail(question) == "Home › Dashboard › Queues › Pause"
    links = {one.attributes["href"] for one in whole_page(question).find("a") if one.words == "Queues"}
    assert links == {PAGE, f"{PAGE}?queue=mail&id="}


def test_queue_is_paused_and_resumed(mail, boss):
    assert ("resume", "mail") not in buttons(boss)
    assert "Duration" in boss.post(URLS["pause"], {"row": "mail"}).content.decode()
    assert mail.paused() is None
    assert said(press(boss, "pause", "mail", wants="15m")) == ["Paused for 15m: mail."]
    assert 800 < mail.paused().ends_in <= 900
    assert entry() == "Pause: mail – Paused for 15m: mail."
    ends = timezone.localtime(timezone.now() + timedelta(minutes=15))
    shown = [f"until {ends - timedelta(minutes=late):%Y-%m-%d %H:%M} since 20" for late in (0, 1)]  # the minute may end
    assert any(one.startswith(tuple(shown)) for one in cells(boss))
    assert said(press(boss, "pause", "mail"))[-1] == "Paused until resumed: mail."
    assert mail.paused().ends_in is None
    assert any(one.startswith("until resumed since 20") for one in cells(boss))
    value = buttons(boss)["resume", "mail"]
    assert said(press(boss, "resume", value))[-1] == "Resumed: mail."
    assert mail.paused() is None
    assert said(press(boss, "resume", value))[-1] == "Nothing was resumed: mail was not paused."
    assert LogEntry.objects.count() == 3


def test_buttons_of_a_paused_queue_stand_in_its_row(mail, boss):
    mail.pause()
    offered = {name for name, head in buttons(boss) if head == "mail"}
    assert offered == {"resume", "pause", "retry_dead"}
    assert ("resume", "default") not in buttons(boss)
    assert said(press(boss, "pause", "mail", wants="5")) == ["Paused for 5 s: mail."]


@pytest.mark.parametrize("time", ["ever", "0", "-1", "1y", "99999999d"])
def test_wrong_times_are_refused_and_not_logged(mail, boss, time):
    assert refused(press(boss, "pause", "mail", wants=time))
    assert mail.paused() is None
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("id", "state", "actions"),
    [
        ("ready", "ready", {"delete"}),
        ("later", "scheduled", {"run_now", "delete"}),
        ("running", "running w1", set()),
        ("d0", "dead", {"retry", "delete"}),
    ],
)
def test_job_is_looked_up(mail, signed_in, id, state, actions):
    client = signed_in("view_dashboard", "manage_queues")
    asked = {"queue": "mail", "id": id}
    found = page(client.get(PAGE, asked))
    assert [one.words for one in found.find("h2")] == ["Job in mail"]
    assert cells(client, **asked)[0].startswith(state)
    offered = buttons(client, **asked)
    assert {name for name, head in offered if head == id} == actions
    assert {unquote(value) for (_, head), value in offered.items() if head == id} <= {f"mail/{id}/{state}"}


def test_actions_and_confirmations_lead_back_to_the_job_looked_up(mail, boss):
    asked = {"queue": "mail", "id": "later"}
    back = f"{PAGE}?queue=mail&id=later"
    found = page(boss.get(PAGE, asked))
    delete = next(
        one.attributes for one in found.find("button", name="row") if "/delete/" in one.attributes["formaction"]
    )
    question = page(boss.post(delete["formaction"], {"row": delete["value"]}))
    assert question.find("a", class_="cancel-link")[0].attributes["href"] == back
    (form,) = question.find("form", class_="rk-confirm")
    response = boss.post(form.attributes["action"], {"row": delete["value"], "confirmed": "1"})
    assert (response.status_code, response.url) == (302, back)
    assert mail.get("later") is None
    assert boss.post(form.attributes["action"], {"row": ""}).url == back


def test_job_that_is_looked_up_shows_arguments_without_secrets(mail, boss):
    found = cells(boss, queue="mail", id="d0")
    assert found[0].endswith("ValueError: no")
    assert "7, password='***'" in found
    assert "{'note': 'hello'}" in cells(boss, queue="mail", id="ready")


def test_queue_alone_is_looked_up_for_its_first_jobs(mail, signed_in):
    put(mail, "mine", TASK, (7,), {"password": "hunter2"}, priority=5)
    client = signed_in("view_dashboard", "manage_queues")
    found = page(client.get(PAGE, {"queue": "mail"}))
    charts = ["Attempts that ended", "How late attempts began, at most"]
    titles = ["Running in mail: 1 of 1", "Ready in mail: 2 of 2", "Scheduled in mail: 1 of 1"]
    dead = "Dead in mail: 13 of 13"
    assert [one.words for one in found.find("h2")] == ["Queue mail", *charts, *titles, dead]
    assert {("pause", "mail"), ("retry_dead", "mail")} <= set(row_buttons(found))
    heads = [one.words for one in found.find("th", scope="row") if "role" in one.attributes]
    assert heads[0] == "mail"
    heads = heads[1:]
    assert heads[:4] == ["running", f"mine {TASK}", "ready", "later"]
    assert heads[4] in [f"d{number} {TASK}" for number in range(13)]
    assert "w1" in cells(client, queue="mail")
    assert "hunter2" not in str(found.elements)
    (link,) = [one for one in found.find("a") if one.words == "mine"]
    assert cells(client, queue="mail", id="mine")[0].startswith("ready")
    assert "queue=mail&id=mine" in link.attributes["href"].replace("&amp;", "&")
    (back,) = page(client.get(PAGE, {"queue": "mail", "id": "mine"})).find("a", href=f"{PAGE}?queue=mail")
    assert back.words == "First jobs of mail"
    assert hints(client, queue="default")[-1] == "The queue has no jobs."


def test_queue_alone_says_how_many_jobs_of_a_state_it_leaves_out(mail, boss, monkeypatch):
    monkeypatch.setattr("redis_kit.queues.dashboard.queues_page.FIRST_JOBS", 5)
    assert "Dead in mail: 5 of 13" in [one.words for one in page(boss.get(PAGE, {"queue": "mail"})).find("h2")]


def test_job_is_found_in_the_queue_that_its_id_names(mail, boss):
    for id in ("x.mail", "x.default"):
        mail.put("both", id=id)
        assert page(boss.get(PAGE, {"queue": "mail", "id": id})).find("h2")[0].words == "Job in mail"
    found = page(boss.get(PAGE, {"queue": "default", "id": "x.mail"}))
    assert found.find("h2")[0].words == "Job in mail"
    assert {name for name, head in row_buttons(found) if head == "x.mail"} == {"delete"}


def test_job_is_found_by_the_first_part_of_its_id(mail, boss):
    id = ids.new_call("mail")
    mail.put("short", id=id)
    found = page(boss.get(PAGE, {"queue": "mail", "id": id.partition(".")[0]}))
    assert {head for _, head in row_buttons(found)} == {id}


def test_form_keeps_a_queue_whose_name_is_long_or_comes_late(kit, boss):
    names = ["q" * 512, *(f"q{number}" for number in range(101))]
    kit.options(QUEUES={"NAMES": ["default", *names]})
    for name in (names[0], names[-1]):
        found = page(boss.get(PAGE, {"queue": name}))
        (label,) = [one.words for one in found.find("option", value=name) if "selected" in one.attributes]
        assert len(label) <= 100


def test_look_up_that_can_find_nothing_says_why(mail, boss):
    for asked in ({"queue": "nope"}, {"queue": "nope", "id": ""}, {"queue": "nope", "id": "x"}):
        assert hints(boss, **asked) == ["There is no queue nope."]
    response = boss.get(PAGE, {"queue": "", "id": " "})
    (live,) = page(response).find("div", id="rk-live")
    for found in (page(response), page(boss.get(live.attributes["data-url"]))):
        titles = [one.words for one in found.find("h2")]
        assert titles[:2] == ["Looked up", "Queues"]
        assert found.find("p", class_="rk-hint")[0].words == "Choose a queue or enter the id of a job."


@pytest.mark.parametrize("id", ["nobody", "a b", "../x", "x" * 200, "<b>"])
def test_missing_job_is_an_error(mail, boss, id):
    found = page(boss.get(PAGE, {"queue": "mail", "id": id}))
    assert found.find("h2")[0].words.startswith(("Job in ", "Looked up"))
    assert found.find("p", class_="rk-hint")[0].words
    assert [one.words for one in found.find("a", class_="rk-back")] == ["Show all"]
    assert not found.find("p", class_="rk-error")


def test_look_up_needs_the_permission_to_manage_queues(mail, signed_in):
    client, asked = signed_in("view_dashboard"), {"queue": "mail", "id": "ready"}
    assert not page(client.get(PAGE, asked)).find("form", class_="rk-search")
    for where in (PAGE, f"{PAGE}fragment/"):
        text = client.get(where, asked).content.decode()
        assert "Job in " not in text
        assert "hello" not in text
    for asked in ({"queue": "mail"}, {"id": "ready"}):
        found = page(client.get(PAGE, asked))
        assert [one.words for one in found.find("h2")][:2] == ["Looked up", "Queues"]
        assert "need the permission to manage queues" in found.find("p", class_="rk-hint")[0].words


def test_dead_job_is_retried(mail, boss):
    value = buttons(boss, queue="mail", id="d3")["retry", "d3"]
    response = boss.post(URLS["retry"], {"row": value})
    assert said(response) == ["Retried 1 job of mail."]
    assert mail.get("d3").state == "ready"
    assert entry() == "Retry: mail, d3 – Retried 1 job of mail."
    assert said(press(boss, "retry", value))[-1] == "Nothing was done: no job is in this state any more."


def test_scheduled_job_is_run_now(mail, boss):
    response = boss.post(URLS["run_now"], {"row": buttons(boss, queue="mail", id="later")["run_now", "later"]})
    assert said(response) == ["Ready: 1 job of mail."]
    assert mail.get("later").state == "ready"


@pytest.mark.parametrize("id", ["ready", "later", "d0"])
def test_job_is_deleted_after_a_question(mail, boss, id):
    value = buttons(boss, queue="mail", id=id)["delete", id]
    assert boss.post(URLS["delete"], {"row": value}).status_code == 200
    assert mail.get(id)
    assert said(press(boss, "delete", value, reason="asked for it")) == ["Deleted 1 job of mail."]
    assert mail.get(id) is None
    assert entry() == f"Delete: mail, {id} – Deleted 1 job of mail. Reason: asked for it"


def test_running_job_is_not_deleted(mail, boss):
    assert said(press(boss, "delete", "mail/running")) == ["Nothing was done: no job is in this state any more."]
    assert mail.get("running")
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(("name", "moved"), [("retry_one", 1), ("retry_ten", 10), ("retry_group", 12)])
def test_dead_jobs_of_a_group_are_retried(mail, boss, name, moved):
    group = f"mail/{TASK}/ValueError"
    noun = "job" if moved == 1 else "jobs"
    assert said(press(boss, name, group)) == [f"Retried {moved} {noun} of mail."]
    assert mail.counts() == QueueCounts(1, 1 + moved, 1, 13 - moved)
    assert f"mail, {TASK}, ValueError – Retried {moved} {noun}" in entry()
    assert mail.get("d0").state == "ready"
    assert mail.get("d12").state == "dead"


def test_buttons_are_shown_if_they_have_something_to_do(mail, boss):
    offered = buttons(boss)
    assert {head for name, head in offered if name == "pause"} == {"default", "mail"}
    assert {head for name, head in offered if name == "retry_dead"} == {"mail"}
    groups = {name: set() for name in OF_GROUPS}
    for one in page(boss.get(PAGE)).find("button", name="row"):
        for name in OF_GROUPS:
            if one.attributes["formaction"] == URLS[name]:
                groups[name].add(unquote(one.attributes["value"]).rpartition("/")[2])
    both = {"ValueError", "KeyError"}
    assert groups == {"retry_one": both, "retry_ten": {"ValueError"}, "retry_group": both}
    mail.purge("dead")
    assert {name for name, head in buttons(boss)} == {"pause"}


@pytest.mark.parametrize("name", ["resume", "retry", "run_now", "delete"])
def test_messages_begin_with_no_name_as_the_admin_would_capitalize_it(mail, boss, name):
    mail.pause()
    found = boss.post(URLS[name], {"row": VALUES[name], "confirmed": "1"}, follow=True)
    assert VALUES[name].partition("/")[0] in page(found).find("ul", class_="messagelist")[0].words


def test_whole_group_is_retried_only_after_a_confirmation(mail, boss):
    value = next(value for (name, _), value in buttons(boss).items() if name == "retry_group")
    assert boss.post(URLS["retry_group"], {"row": value}).status_code == 200
    assert mail.counts().dead == 13


def test_missing_group_is_an_error(mail, boss):
    mail.purge("dead")
    response = press(boss, "retry_one", f"mail/{TASK}/ValueError")
    assert said(response) == ["Nothing was retried: the group has no dead jobs any more."]
    assert not LogEntry.objects.exists()


def test_groups_are_of_a_thousand_jobs_at_most(mail, boss, monkeypatch):
    monkeypatch.setattr("redis_kit.queues.reports.job_pages.LOOKED_THROUGH", 5)
    found = page(boss.get(PAGE))
    assert "Dead jobs by task and error, the latest 5" in [one.words for one in found.find("h2")]


VALUES = {
    "pause": "mail",
    "resume": "mail",
    "retry": "mail/d0",
    "run_now": "mail/later",
    "delete": "mail/d0",
    **dict.fromkeys(OF_GROUPS, f"mail/{TASK}/ValueError"),
    "retry_dead": "mail",
}


@pytest.mark.parametrize("codenames", [("view_dashboard",), ("view_dashboard", "release_locks"), ("manage_queues",)])
def test_permission_to_change_is_needed(mail, signed_in, codenames):
    client, before = signed_in(*codenames), mail.counts()
    for name, value in VALUES.items():
        assert press(client, name, value).status_code == 403
    assert mail.counts() == before
    assert mail.paused() is None
    assert not LogEntry.objects.exists()
    if "view_dashboard" in codenames:
        assert buttons(client) == {}


@pytest.mark.parametrize("name", NAMES)
def test_token_and_post_are_required(mail, boss, signed_in, name):
    strict, before = signed_in("superuser", enforce_csrf_checks=True), mail.counts()
    assert press(strict, name, VALUES[name]).status_code == 403
    assert boss.get(URLS[name], {"row": VALUES[name]}).status_code == 302
    assert mail.counts() == before


NO_ROWS = ("junk", "", "%20", "none/x", "none/x/y", "mail/nobody", "mail//", "%ff%fe/x", "x" * 3000, "/", "mail/a b")


@pytest.mark.parametrize("name", NAMES)
def test_value_of_no_row_does_no_harm(mail, boss, name):
    before = mail.counts()
    for value in NO_ROWS:
        assert press(boss, name, value).status_code == 302, value
        assert mail.counts() == before, value
        assert not LogEntry.objects.exists(), value


@pytest.mark.parametrize("attack", FEW)
def test_jobs_can_put_nothing_into_the_page(kit, signed_in, attack):
    def pages(text):
        for key in kit.keys():
            kit.client.delete(key)
        client, queue = signed_in("superuser"), Queue("mail")
        queue.put({"x": text, text: "x"}, id="a")
        queue.nack(*queue.claim(), max_attempts=1, error=text)
        put(queue, "b", text or "x", (text,), {"x": text})
        queue.nack(*queue.claim(), max_attempts=1, error="ValueError: no")
        asked = [{"queue": "mail", "id": "a"}, {"queue": "mail", "id": "b"}, {"queue": "mail", "id": text or "x"}]
        found = [whole_page(client.get(PAGE, one)) for one in (*asked, {"queue": text or "x", "id": "a"})]
        values = [value for (name, _), value in buttons(client).items() if name == "retry_group"]
        found += [whole_page(client.post(URLS["retry_group"], {"row": value})) for value in sorted(values)[:1]]
        for value in values:
            press(client, "retry_group", value)
        return [*found, whole_page(client.get(PAGE)), whole_page(client.get("/admin/"))]

    for found in pages(attack):
        assert harmless_links(found)
        shape = str(without_titles(found.shape))
        assert "onerror" not in shape
        assert "<b>" not in shape


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_look_up_waits_for_three_answers_at_most_in_an_outage(own_kit, boss, unanswered, how):
    asked = {"queue": "default", "id": "x"}
    boss.get(PAGE, asked)
    getattr(own_kit.server, how)()
    try:
        connections.close()  # so that no breaker is open yet
        assert page(boss.get(PAGE, asked)).find("p", class_="rk-error")
        assert 1 <= len(unanswered) <= 3
    finally:
        own_kit.server.thaw() if how == "freeze" else None


def test_form_and_its_values_stay_while_the_server_is_unavailable(own_kit, boss):
    own_kit.server.stop()
    found = page(boss.get(PAGE, {"queue": "default", "id": "x"}))
    assert found.find("p", class_="rk-error")
    assert found.find("form", class_="rk-search")
    (queue,) = found.find("input", name="queue")
    assert (queue.attributes["type"], queue.attributes["value"]) == ("text", "default")
    response = boss.post(f"{URLS['resume']}?queue=default&id=x", {"row": "default"})
    assert response.url == f"{PAGE}?queue=default&id=x"


def test_button_makes_only_the_calls_that_it_needs(mail, boss, kit, commands):
    boss.get(PAGE)
    press(boss, "run_now", "mail/later")
    mail.put("again", id="again", delay=600)
    with commands(kit) as sent:
        boss.post(f"{URLS['run_now']}?queue=mail&id=again", {"row": "mail/again", "confirmed": "1"})
    assert mail.get("again").state == "ready"
    assert sent.count("SMEMBERS") == 1  # whether there is such a queue


def test_hundred_queues_make_one_page(kit, boss):
    for number in range(110):
        queue = Queue(f"q{number}")
        queue.put(1)
        queue.nack(*queue.claim(), max_attempts=1, error=f"E{number}: x")
    found = page(boss.get(PAGE))
    assert len(found.find("button", formaction=URLS["pause"])) == 100
    assert "10 more rows are not shown here." in hints(boss)  # of errors
    assert not found.find("p", class_="rk-error")


def test_full_list_of_names_is_an_alarm_on_the_page_and_the_overview(mail, boss, monkeypatch):
    said = "Further queues are not shown, unless NAMES in the settings has them."
    assert said not in boss.get(PAGE).content.decode()
    monkeypatch.setattr(queues_page, "MOST_NAMES", 2)
    for address in (PAGE, ADMIN):
        assert said in boss.get(address).content.decode()
    monkeypatch.setattr(actions, "MOST_NAMES", 2)
    assert "There is no queue nope. It may exist: no further names" in hints(boss, queue="nope")[0]


def test_figures_are_of_all_queues_and_busy_ones_are_on_the_first_page(kit, boss):
    kit.client.sadd(names_key(), *(f"a{number:03}" for number in range(120)))
    queue = Queue("zeta")
    queue.put(1)
    queue.nack(*queue.claim(), max_attempts=1, error="E: x")
    first, second = (page(boss.get(PAGE, {"page": number})) for number in (1, 2))
    for shown in (first, second):
        (dead,) = [one.words for one in shown.find("dl", class_="rk-figures")]
        assert "Dead 1" in dead
    rows = [[one.words for one in each.find("th", scope="row") if one.words[:1] in "az"] for each in (first, second)]
    assert rows[0][0] == "zeta"
    assert len(rows[0]) == 99  # and the queue "default"
    assert "zeta" not in rows[1]
    assert {"a119", "zeta"} <= {one.attributes["value"] for one in first.find("option")}
    counted = page(boss.get(f"{ADMIN}jobs/"))
    assert counted.find("th", scope="row")[0].words == "zeta"
    assert counted.find("nav", class_="rk-pages")


def test_page_is_in_the_language_of_its_viewer(mail, boss):
    mail.pause()
    with translation.override("zh-hans"):
        asked = ({}, {"queue": "mail"}, {"queue": "mail", "id": "d0"})
        text = "".join(boss.get(PAGE, one).content.decode().partition("<main")[2] for one in asked)
    for words in ("查询", "暂停", "恢复", "重试", "删除", "死信", "按任务和错误分组", "直到恢复为止"):
        assert words in text
    for words in ("Look up", "Pause", "Resume", "Retry", "Delete", "Put ", "Dead ", "resumed", "Arguments", " in "):
        assert words not in text


@pytest.mark.once
def test_job_is_looked_up_and_retried_with_the_keyboard(visit, monkeypatch, mail):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)
    die("ValueError: " + "x" * 300, task="a.module.with.a.long.name.tasks.and_a_long_function")
    mail.pause(600)

    def look(page):
        page.get_by_label("Queue", exact=True).first.select_option("mail")
        page.get_by_label("Id of a job").fill("d3")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Job in mail")
        assert layout_problems(page) == []
        with page.expect_response("**/fragment/?*id=d3*"):
            pass
        page.get_by_role("button", name="Retry: d3").press("Enter")
        page.wait_for_selector(".messagelist")
        assert layout_problems(page) == []
        page.get_by_role("link", name="First jobs of mail").click()
        page.wait_for_selector("text=Dead in mail")
        assert layout_problems(page) == []
        page.get_by_role("link", name="Show all").click()
        page.get_by_role("button", name="Pause: mail").press("Enter")
        page.get_by_label("Duration").fill("15m")
        assert layout_problems(page) == []
        page.keyboard.press("Enter")
        page.wait_for_selector(".messagelist")

    visit(look, start=PAGE)
    assert mail.get("d3").state == "ready"
    assert mail.paused().ends_in > 700


def given_back():
    """Let a worker give back jobs that it can't run."""
    mail = Queue("mail")
    for task, kwargs in ((TASK, {}), (TASK, {"html": True, "to": "x"}), (f"a.module.with.a.long.name.{'x' * 80}", {})):
        for number in range(3):
            mail.put({"task": task, "args": [number], "kwargs": kwargs})
    mail.put({"task": "<script>alert(1)</script>"})
    mail.put({"v": 9})
    drain("mail")


def test_calls_that_no_living_worker_can_run_are_named(kit, boss):
    given_back()
    text = boss.get(PAGE).content.decode()
    assert "Calls that no worker can run" in text
    assert "shop.tasks.send(_, html=, to=)" in text
    assert "(a message of version 9)" in text
    assert "<script>alert(1)" not in text
    assert "Jobs that no worker can run" in [one.words for one in page(boss.get(PAGE)).find("dt")]
    with translation.override("zh-hans"):
        text = boss.get(PAGE).content.decode().partition("<main")[2]
    assert "没有存活的工作进程能够执行的调用" in text
    assert "living worker" not in text
    assert "（版本 9 的消息）" in text
    assert "of version" not in text


@pytest.mark.once
def test_calls_that_no_living_worker_can_run_fit_the_page(visit, monkeypatch, kit):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)
    given_back()

    def look(page):
        page.wait_for_selector("text=Calls that no worker can run")
        assert layout_problems(page) == []

    visit(look, start=PAGE)


def test_name_and_numbers_of_a_queue_lead_to_its_jobs(kit, signed_in):
    Queue("mail").put("x")
    found = page(signed_in("view_dashboard", "manage_queues").get(PAGE))
    links = {one.words: one.attributes["href"] for one in found.find("a") if "queue=mail" in one.attributes["href"]}
    assert links == {"mail": f"{ADMIN}queues/?queue=mail", "1": f"{ADMIN}jobs/?queue=mail&state=ready"}
    assert not [one for one in page(signed_in("view_dashboard").get(PAGE)).find("a") if one.words in links]


@pytest.mark.django_db(transaction=True)
def test_outbox_is_shown_if_a_task_has_one(mail, boss, kit):
    def shown():
        found = " ".join(element.words for element in page(boss.get(PAGE)).find("dl"))
        return found.partition("Outbox (default)")[2][:60]

    assert shown() == ""
    kit.options(QUEUES={"OUTBOX": "default"})
    assert shown().split()[0] == "0"
    outbox.store("default", [outbox.new_row(queue="mail", job="j", body="{}")])
    OutboxMessage.objects.update(created=timezone.now() - timedelta(minutes=5))
    assert shown().startswith(" 1 Alarm The oldest call has waited for 30")


def urgent(reports):
    return [(str(one.text), one.value, dict(one.asked)) for one in queues_page.alerts(reports, linked=True)]


def test_late_queue_has_workers_and_paused_one_has_jobs_that_are_due(kit):
    stats = queue_stats(["mail"])["mail"]._replace(wait=301.0, workers=1)
    others = {
        "quick": stats._replace(wait=300.0),
        "deserted": stats._replace(workers=0),
        "empty": stats._replace(wait=None),
    }
    paused = {f"paused {name}": one._replace(paused=PauseInfo(0.0, None)) for name, one in others.items()}
    span = timedelta(seconds=301)
    late, stopped = urgent({"mail": stats, **others, **paused})
    assert late == ("Late queue: mail", span, {"queue": "mail"})
    assert stopped == ("Paused queue: paused deserted", span, {"queue": "paused deserted"})
    assert not next(queues_page.alerts({"mail": stats}, linked=False)).asked


def test_queue_of_whose_attempts_half_failed_is_an_alert(kit):
    stats = queue_stats(["mail"], minutes=60)["mail"]
    older, few = [100] * 30 + [0] * 30, [0] * 59
    reports = {
        "mail": stats._replace(done=[*few, 5], failed=[*few, 11]),
        "half": stats._replace(done=[*few, 5], failed=[*few, 5]),
        "fine": stats._replace(done=[*few, 6], failed=[*few, 5]),
        "few": stats._replace(done=[*few, 0], failed=[*few, 9]),
        "before": stats._replace(done=stats.done, failed=older),
    }
    found = urgent(reports)
    assert found == [
        ("Failing queue: mail", "69 %", {"queue": "mail"}),
        ("Failing queue: half", "50 %", {"queue": "half"}),
    ]
    past = stats._replace(done=[0] * 60, failed=[*[0] * 40, 1500, *[0] * 19])
    (alert,) = queues_page.alerts({"past": past}, linked=True)
    how_many = "1,500 of the 1,500 attempts of the last 30 minutes failed"
    assert alert.hint == f"{how_many}, the latest at most 20 min ago."


def test_three_queues_of_a_kind_are_named_and_the_others_counted(kit):
    stats = queue_stats(["mail"])["mail"]
    reports = {f"q{count}": stats._replace(counts=QueueCounts(0, 0, 0, count)) for count in range(6)}
    named = [(f"Dead jobs: q{count}", count, {"queue": f"q{count}"}) for count in (5, 4, 3)]
    assert urgent(reports) == [*named, ("2 others", "", {})]


def test_overview_tells_of_dead_jobs_and_links_to_their_queue(mail, boss):
    found = page(boss.get(ADMIN))
    (box,) = found.find("section", class_="rk-attention")
    assert "Queues: Dead jobs: mail 13 · They failed for good." in box.words
    assert f"{ADMIN}queues/?queue=mail" in [one.attributes["href"] for one in found.find("a")]


def test_page_of_one_queue_has_a_choice_of_ranges(mail, boss):
    ranges = {str(hours): str(each.label) for hours, each in RANGES.items()}
    assert list(ranges.values()) == ["1 hour", "6 hours", "24 hours", "72 hours", "7 days", "30 days", "90 days"]
    bars_by_range = zip(ranges, (60, 36, 48, 72, 84, 90, 90), strict=True)
    for asked, bars in (*bars_by_range, ("5", 60), ("<b>", 60)):
        found = page(boss.get(PAGE, {"queue": "mail", "range": asked}))
        (nav,) = found.find("nav", class_="rk-pages")
        assert nav.words == " ".join(ranges.values())
        assert {one.words.partition(" bars")[0] for one in found.find("desc")} <= {str(bars), str(bars + 1)}
        chosen = [one.words for one in found.find("a", aria_current="true")]
        assert chosen == [ranges.get(asked, "1 hour")]
    (live,) = page(boss.get(PAGE, {"queue": "mail", "range": "24"})).find("div", id="rk-live")
    assert live.attributes["data-url"].endswith("?queue=mail&range=24")


def test_bars_of_a_range_add_up_its_minutes(kit):
    stats = queue_stats(["mail"], minutes=1440)["mail"]
    last = datetime(2026, 11, 24, 0, 7, tzinfo=timezone.get_default_timezone()).timestamp() // 60
    stats = stats._replace(minute=int(last), done=[1] * 1440, failed=[0] * 1439 + [5], latest=[0.0] * 1438 + [3.0, 1.0])
    _ranges, ended, late = queues_page.charts("mail", stats, RANGES[24])
    assert [values for _name, values in ended.parts] == [[22, *[30] * 47, 8], [0] * 48 + [5]]
    assert [value.total_seconds() for _label, value in late.bars] == [0.0] * 48 + [3.0]
    assert [label for label, _value in late.bars][::48] == ["11-23 00:08", "11-24 00:00"]
