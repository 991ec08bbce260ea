"""The page of jobs: states, searches, pages, dead jobs by cause, and buttons for many jobs."""

from urllib.parse import unquote

import pytest
from django.contrib.admin.models import LogEntry

from redis_kit.core import component
from redis_kit.queues import Queue
from redis_kit.queues.dashboard import actions, job_list_page
from redis_kit.queues.reports import job_pages
from tests.dashboard.support.attacks import FEW, harmless_links
from tests.dashboard.support.html import page, rows, said
from tests.fixtures.dashboard import ADMIN, layout_problems
from tests.queues.support.putting import put

pytestmark = pytest.mark.once

PAGE = f"{ADMIN}jobs/"
SEND, COUNT = "shop.tasks.send", "shop.tasks.count"


@pytest.fixture
def mail(kit):
    """A queue with jobs in all states: two ready, one running, three dead, and two scheduled."""
    queue = Queue("mail")
    for number, reason in enumerate(("ValueError: token=hunter2", "ValueError: no", "KeyError: 'x'")):
        put(queue, f"d{number}", SEND, (7,), {"password": "hunter2"})
        queue.nack(*queue.claim(), max_attempts=1, error=reason)
    put(queue, "running", COUNT)
    queue.claim(worker="w1")
    put(queue, "ready", SEND)
    put(queue, "counts", COUNT)
    put(queue, "later", SEND, delay=600)
    put(queue, "latest", COUNT, delay=900)
    return queue


def look(client, **asked):
    return page(client.get(PAGE, asked))


def ids(found):
    """Return the ids in the table of jobs, without the lines below them."""
    return [unquote(box.attributes["value"]).split("/")[1] for box in found.find("input", name="chosen")]


def figures(found):
    names, values = ([one.words for one in found.find(tag)] for tag in ("dt", "dd"))
    return dict(zip(names, [value for value in values if value.isdigit()], strict=True))


def links(found, text):
    return [one.attributes["href"] for one in found.find("a") if one.words == text]


def press(client, name, *values, confirmed=True, **given):
    """Press a button below the table with rows selected, and answer the page of confirmation."""
    response = client.post(f"{PAGE}do/{name}/", {"selected": "1", "chosen": values})
    if not confirmed or response.status_code != 200:
        return response
    (carried,) = page(response).find("input", name="row")
    return client.post(f"{PAGE}do/{name}/", {"row": carried.attributes["value"], "confirmed": "1", **given})


def test_page_shows_the_jobs_of_each_state(mail, boss):
    found = look(boss, queue="mail")
    assert figures(found) == {"Ready": "2", "Scheduled": "2", "Running": "1", "Dead": "3", "Done": "0"}
    assert [row["Attempts"] for row in rows(found, "Ready in mail")] == ["0", "0"]
    assert [ids(look(boss, queue="mail", state=state)) for state in ("running", "ready", "scheduled", "dead")] == [
        ["running"],
        ["ready", "counts"],
        ["later", "latest"],
        ["d2", "d1", "d0"],
    ]


def test_page_of_a_queue_opens_on_the_first_state_that_has_jobs(mail, boss):
    mail.purge("ready")
    mail.purge("scheduled")
    found = look(boss, queue="mail")
    assert ids(found) == ["running"]
    assert "Running" in [one.words for one in found.find("option") if "selected" in one.attributes]
    assert ids(look(boss, queue="mail", state="ready")) == []


def test_without_a_queue_the_jobs_of_all_queues_are_counted(mail, boss, trips):
    look(boss)
    trips.clear()
    found = look(boss, state="ready")
    assert len(trips) == 2
    counted = [tuple(row.values()) for row in rows(found, "Jobs of all queues")]
    assert counted == [("default", "0", "0", "0", "0"), ("mail", "2", "2", "1", "3")]
    assert links(found, "3")[0].endswith("jobs/?queue=mail&state=dead")
    assert links(found, "mail")[0].endswith("jobs/?queue=mail")
    searched = look(boss, task="send")
    assert links(searched, "3")[0].endswith("jobs/?queue=mail&state=dead&task=send")
    assert len(rows(searched, "Choose the queue to search in")) == 2


def test_queue_that_can_not_be_read_hides_no_other(mail, boss, kit):
    kit.client.set(Queue("default").key("ready"), "x")
    found = look(boss)
    assert [row[""] for row in rows(found, "Queues that can't be read")] == ["default"]
    assert [row[""] for row in rows(found, "Jobs of all queues")] == ["mail"]


def test_dead_jobs_show_their_errors_and_their_causes(mail, boss):
    found = look(boss, queue="mail", state="dead")
    dead = rows(found, "Dead in mail")
    assert [row["Error"].split()[0] for row in dead] == ["KeyError", "ValueError", "ValueError"]
    assert "hunter2" not in str([row.words for row in found.find("tr")])
    groups = rows(found, "Dead jobs by task and error")
    assert [(row[""], row["Jobs"]) for row in groups] == [(f"{SEND} mail", "2"), (f"{SEND} mail", "1")]
    assert all(row["First failure"] and row["First failure"] <= row["Last failure"] for row in groups)
    like = links(found, SEND)[0]
    assert ids(page(boss.get(like))) == ["d1", "d0"]


def test_search_finds_tasks_and_errors_in_any_case(mail, boss):
    assert ids(look(boss, queue="mail", state="ready", task="TASKS.COUNT")) == ["counts"]
    assert ids(look(boss, queue="mail", state="dead", error="valueerror")) == ["d1", "d0"]
    assert ids(look(boss, queue="mail", state="dead", task=COUNT, error="ValueError")) == []
    nothing = look(boss, queue="mail", state="ready", task="nobody")
    assert "Searched 2 jobs; none of them matches." in [one.words for one in nothing.find("p")]


def test_search_finds_a_whole_tag_in_each_state(kit, boss):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": 100}}})
    queue, tags = Queue("mail"), ("billing", "order:42")
    for state in ("done", "dead", "running", "ready"):
        put(queue, state, SEND, tags=tags)
        if state == "ready":
            continue
        (job,) = queue.claim(worker="w")
        if state == "done":
            queue.ack(job)
        if state == "dead":
            queue.nack(job, max_attempts=1, error="ValueError: no")
    put(queue, "scheduled", SEND, delay=60, tags=tags)
    put(queue, "other", SEND, kwargs={"tags": ["billing"]})
    for state in ("ready", "scheduled", "running", "dead", "done"):
        found = look(boss, queue="mail", state=state, tag="Order:42")
        names = [row.words for row in found.find("td") + found.find("th") if "#order:42" in row.words]
        assert names == [f"{state} {SEND} #billing #order:42"]
        assert links(found, "#billing")[0].endswith(f"jobs/?queue=mail&state={state}&tag=billing")
    assert ids(look(boss, queue="mail", state="ready", tag="order")) == []


def test_button_for_a_tag_changes_its_jobs_only(kit, boss):
    queue = Queue("mail")
    for number, tags in enumerate([("a",), ("b",), ("a", "b")]):
        put(queue, f"j{number}", SEND, tags=tags)
    (button,) = [one for one in look(boss, queue="mail", tag="a").find("button", name="row") if one.words == "Delete…"]
    value = button.attributes["value"]
    assert said(boss.post(button.attributes["formaction"], {"row": value, "confirmed": "1"})) == [
        "Deleted 2 jobs of mail."
    ]
    assert [info.id for info in queue.peek()] == ["j1"]
    assert "'a'" in LogEntry.objects.get().get_change_message()


@pytest.mark.parametrize("state", ["ready", "scheduled", "running", "dead"])
def test_pages_go_on_where_the_one_before_ended(state, kit, boss, monkeypatch):
    monkeypatch.setattr(job_list_page, "SHOWN", 2)
    queue = Queue("mail")
    for number in range(5):
        put(queue, f"j{number}", SEND, delay=600 if state == "scheduled" else 0)
    for job in queue.claim(5, worker="w") if state in ("running", "dead") else ():
        if state == "dead":
            queue.nack(job, max_attempts=1, error="ValueError: no")
    seen, found = [], look(boss, queue="mail", state=state)
    for _ in range(3):
        seen += ids(found)
        further = links(found, "Next")
        where = found.find("nav", class_="rk-pages")[0].words
        found = page(boss.get(further[0])) if further else found
    assert sorted(seen) == [f"j{number}" for number in range(5)]
    assert (further, where) == ([], "Jobs looked at: 1. This is the end.")


def test_page_that_large_jobs_fill_is_not_the_last_one(kit, boss, monkeypatch):
    monkeypatch.setattr(job_pages, "PAGE_BYTES", 1000)
    Queue("mail").put_many(["x" * 400] * 7)
    found, seen = look(boss, queue="mail"), 3
    while further := links(found, "Next"):
        found = page(boss.get(further[0]))
        seen += len(ids(found))
    assert seen == 7


def test_jobs_that_leave_between_two_pages_hide_no_others(kit, boss, monkeypatch):
    monkeypatch.setattr(job_list_page, "SHOWN", 2)
    queue = Queue("mail")
    for number in range(6):
        put(queue, f"j{number}", SEND)
    (further,) = links(look(boss, queue="mail"), "Next")
    for id in ("j0", "j1"):
        queue.delete(id)
    assert ids(page(boss.get(further))) == ["j2", "j3"]


def test_page_of_a_queue_with_shards_shows_all_of_them(kit, boss, monkeypatch):
    monkeypatch.setattr(job_list_page, "SHOWN", 4)
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"SHARDS": 3}}})
    queue = Queue("mail")
    for number in range(9):
        put(queue, f"j{number}", SEND)
    seen, found = [], look(boss, queue="mail")
    while further := links(found, "Next"):
        seen += ids(found)
        found = page(boss.get(further[0]))
    assert sorted(seen + ids(found)) == [f"j{number}" for number in range(9)]


def test_selected_jobs_are_changed_after_a_confirmation_and_logged(mail, boss):
    asked = press(boss, "retry_jobs", "mail/d0", "mail/d2", confirmed=False)
    assert "2 dead jobs become ready as if they were new." in [one.words for one in page(asked).find("p")]
    assert mail.counts().dead == 3
    assert said(press(boss, "retry_jobs", "mail/d0", "mail/d2", reason="fixed")) == ["Retried 2 jobs of mail."]
    assert (mail.counts().dead, mail.counts().ready) == (1, 4)
    entry = LogEntry.objects.get()
    assert entry.object_repr == "Retry: mail, d0, d2"
    assert entry.get_change_message() == "Retry: mail, d0, d2 – Retried 2 jobs of mail. Reason: fixed"


def test_each_state_has_its_buttons(mail, boss):
    def offered(state):
        return [one.words for one in look(boss, queue="mail", state=state).find("button", name="selected")]

    assert offered("ready") == ["Cancel jobs…", "Delete…"]
    assert offered("scheduled") == ["Run now…", "Cancel jobs…", "Delete…"]
    assert offered("running") == ["Cancel jobs…"]
    assert offered("dead") == ["Retry…", "Delete…"]
    assert said(press(boss, "run_now_jobs", "mail/later")) == ["Ready: 1 job of mail."]
    assert said(press(boss, "cancel_jobs", "mail/ready", "mail/running")) == [
        "Cancelled 2 jobs of mail. 1 is running; its worker stops it."
    ]
    assert said(press(boss, "delete_jobs", "mail/latest", "mail/running")) == [
        "Deleted 1 job of mail. 1 job is in another state, or gone."
    ]
    assert mail.counts() == (0, 2, 1, 3)


def test_all_jobs_that_match_are_changed_together(mail, boss):
    found = look(boss, queue="mail", state="dead", error="ValueError")
    (button,) = [one for one in found.find("button", name="row") if one.words == "Delete…"]
    url, value = button.attributes["formaction"], button.attributes["value"]
    asked = page(boss.post(url, {"row": value}))
    effect = "2 jobs are deleted, and can't be retried. Callers that wait for their results get none."
    assert f"{effect} Tasks: {SEND} (2)." in [one.words for one in asked.find("p")]
    assert said(boss.post(url, {"row": value, "confirmed": "1"})) == ["Deleted 2 jobs of mail."]
    assert [info.id for info in mail.peek(10, state="dead")] == ["d2"]
    assert said(boss.post(url, {"row": value}))[1:] == ["Nothing was done: no job is in this state any more."]


def test_confirmation_of_all_that_match_is_for_these_jobs(mail, boss, monkeypatch):
    monkeypatch.setattr(actions, "MOST", 2)
    for number in range(3, 6):
        put(mail, f"r{number}", COUNT)
    url, value = f"{PAGE}do/cancel_jobs/", "?queue=mail&state=ready&task=count"
    asked = page(boss.post(url, {"row": value}))
    assert [one.words for one in asked.find("dd")] == ["mail, ready, 'count'"]
    (carried,) = asked.find("input", name="row")
    confirmed = {"row": carried.attributes["value"], "confirmed": "1"}
    mail.delete("counts")
    put(mail, "counts", SEND, delay=60)
    mail.delete("r3")
    put(mail, "newer", COUNT)
    assert said(boss.post(url, confirmed)) == ["Cancelled 1 job of mail. 1 job is in another state, or gone."]
    assert said(boss.post(url, confirmed))[-1] == "Nothing was done: no job is in this state any more."
    assert [info.id for info in mail.peek(10)] == ["ready", "r4", "r5", "newer"]
    (entry,) = LogEntry.objects.all()
    assert entry.object_repr == "Cancel jobs: mail, ready, 'count'"


def test_dead_jobs_that_were_retried_meanwhile_are_not_deleted(mail, boss):
    found = look(boss, queue="mail", state="dead")
    values = [box.attributes["value"] for box in found.find("input", name="chosen")]
    mail.requeue(["d0"])
    assert said(press(boss, "delete_jobs", *values)) == ["Deleted 2 jobs of mail. 1 job is in another state, or gone."]
    assert mail.get("d0").state == "ready"
    refusal = "Nothing was done: no job is in this state any more."
    assert said(press(boss, "delete_jobs", values[-1]))[-1] == refusal
    confirmed = {"row": values[-1], "confirmed": "1"}
    assert said(boss.post(f"{PAGE}do/delete_jobs/", confirmed))[-1] == refusal
    assert mail.get("d0").state == "ready"


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([], "Nothing was done: no row was selected."),
        (["mail"], "Nothing was done: this is not a job."),
        (["mail/d0", "other/d1"], "Nothing was done: select up to 1,000 jobs of one queue in one state."),
        (["mail/d0/dead", "mail/d1/ready"], "Nothing was done: select up to 1,000 jobs of one queue in one state."),
        (["?queue=mail&state=dead&ids=d0+d/1"], "Nothing was done: this is not a search for jobs."),
        (["?queue=mail&state=done"], "Nothing was done: this is not a search for jobs."),
        (["?state=dead"], "Nothing was done: this is not a search for jobs."),
        (["none/d0"], "There is no queue none."),
        (["mail/gone"], "Nothing was done: no job is in this state any more."),
        (["mail/gone\nmail/lost"], "Nothing was done: no job is in this state any more."),
    ],
)
def test_other_values_change_nothing(values, answer, mail, boss):
    before = mail.counts()
    assert said(press(boss, "delete_jobs", *values)) == [answer]
    assert mail.counts() == before
    assert not LogEntry.objects.exists()


def test_a_button_changes_no_more_than_it_says(mail, boss, monkeypatch):
    monkeypatch.setattr(actions, "MOST", 2)
    assert said(press(boss, "delete_jobs", "?queue=mail&state=dead")) == ["Deleted 2 jobs of mail."]


def test_page_and_its_buttons_need_the_permission_to_manage_queues(mail, signed_in):
    client = signed_in("view_dashboard")
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}do/delete_jobs/", {"row": "mail/d0", "confirmed": "1"}).status_code == 403
    assert mail.counts().dead == 3


@pytest.mark.parametrize("cursor", ["zz", "00", "30206e616e2078", "2d312030", "f" * 900, b"0 5-1".hex()])
def test_wrong_cursor_is_an_error_of_the_page(cursor, mail, boss):
    found = look(boss, queue="mail", cursor=cursor)
    assert "The cursor of a page is that of the page before it, unchanged." in str([p.words for p in found.elements])


def test_unknown_queue_and_state_are_answered(mail, boss):
    assert "There is no queue <x>." in str([one.words for one in look(boss, queue="<x>").elements])
    assert ids(look(boss, queue="mail", state="<x>")) == ["ready", "counts"]


def test_page_takes_two_round_trips(mail, boss, trips):
    look(boss, queue="mail", state="dead", error="x")
    trips.clear()
    look(boss, queue="mail", state="dead", error="x")
    assert len(trips) == 2


def test_viewing_writes_nothing(mail, boss, commands, kit):
    with commands(kit) as sent:
        for state in job_list_page.TITLES:
            look(boss, queue="mail", state=state, task="x")
    assert set(sent) <= {"SMEMBERS", "EVALSHA", "XLEN", "XREVRANGE"}


@pytest.mark.parametrize("attack", FEW)
def test_hostile_names_stay_text(attack, kit, boss):
    queue = Queue("mail")
    put(queue, "j1", attack)
    queue.nack(*queue.claim(), max_attempts=1, error=attack)
    plain = look(boss, queue="mail", state="dead")
    assert ids(plain) == ["j1"]
    found = look(boss, queue="mail", state="dead", task=attack, error=attack)
    assert harmless_links(found)


def test_done_jobs_are_listed_from_the_latest_page_by_page(kit, boss, monkeypatch):
    monkeypatch.setattr(job_list_page, "SHOWN", 2)
    queue = Queue("mail")
    put(queue, "first", SEND)
    queue.ack(*queue.claim())
    assert "No done job is kept." in str([one.words for one in look(boss, queue="mail", state="done").find("p")])
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"DONE_LIMIT": 100}}})
    for number in range(3):
        put(queue, f"j{number}", COUNT if number else SEND)
        queue.ack(*queue.claim(worker="w1"))
    found = look(boss, queue="mail", state="done")
    assert figures(found)["Done"] == "3"
    done = rows(found, "Done in mail")
    assert [row[""].split() for row in done] == [["j2", COUNT], ["j1", COUNT]]
    assert {(row["Attempts"], row["Worker"], row["Run time"]) for row in done} == {("1", "w1", "–")}
    assert not found.find("button", name="selected")
    last = rows(page(boss.get(links(found, "Next")[0])), "Done in mail")
    assert [row[""].split()[0] for row in last] == ["j0"]
    (one,) = rows(look(boss, queue="mail", state="done", task="send"), "Done in mail")
    assert one[""].startswith("j0")


def test_selected_rows_outlast_a_refresh_and_pages_fit_any_window(mail, visit, monkeypatch):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)

    def retry(tab):
        assert layout_problems(tab) == []
        tab.get_by_label("Select d1").check()
        put(mail, "more", SEND)
        with tab.expect_response("**/fragment/?*"):
            pass
        tab.get_by_role("button", name="Retry…", exact=True).first.click()
        tab.get_by_role("button", name="Retry").click()
        assert tab.locator(".messagelist").inner_text() == "Retried 1 job of mail."

    visit(retry, start=f"{PAGE}?queue=mail&state=dead&error=no")
