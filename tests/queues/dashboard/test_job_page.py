"""The page of one job: attempts, tracebacks, arguments, return value, and buttons."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import translation

from redis_kit.core import component, connections
from redis_kit.queues import Queue, task
from redis_kit.queues.engine import calls, claim, payload
from redis_kit.queues.engine.calls import claim_of
from redis_kit.queues.engine.done import Ack
from redis_kit.queues.features.results.progress import STORE_PROGRESS
from tests.dashboard.support.attacks import SAMPLE, harmless_links, without_titles
from tests.dashboard.support.html import page, row_buttons, rows, said, whole_page
from tests.fixtures.dashboard import ADMIN, layout_problems
from tests.queues.support.putting import put

PAGE = f"{ADMIN}queues/"
CANCEL = f"{PAGE}do/cancel/"
EVER = 10**9  # ms
GONE = "the job is gone, its result is stored"


@task(queue_name="mail", unique=True, expires=3600, enqueue_on_commit=False)
def send(user, password="", note=""):
    """A task that nobody runs here."""


def enqueued(**options):
    return send.using(**options).enqueue(7, password="hunter2", note="hi " * 100)


def attempt(queue, error="", *, text="ValueError: token=hunter2", most=9, worker="w1"):
    """Begin a job, and let it fail where there is an error."""
    (job,) = queue.claim(worker=worker)
    if error:
        kept = payload.encoded([error, f'Traceback (most recent call last):\n  File "x.py"\n{text}\n'], "x")
        queue.run_flow(claim.fail(queue, job, 0, text, most, (kept, EVER)))
    return job


@pytest.fixture
def mail(kit):
    return Queue("mail")


def look(client, id, queue=""):
    return page(client.get(PAGE, {"queue": queue, "id": id}))


def cells(found, title):
    """Return the cells of the first row below a heading, by their columns."""
    return rows(found, title)[0]


def listings(found):
    texts = ["".join(one.text) for one in found.find("pre")]
    titles = [one.words for one in found.find("summary") if "rk-item" in one.attributes.get("id", "")]
    return dict(zip(titles, texts, strict=True))


def test_job_that_waits_shows_its_time_its_unique_key_and_its_arguments(mail, boss):
    result = enqueued(run_after=timedelta(seconds=60))
    found = look(boss, result.id)
    its = cells(found, "Job in mail")
    assert its[""] == f"{result.id} {__name__}.send First jobs of mail"
    assert its["State"].startswith("scheduled 20")
    conditions = cells(found, "Conditions")
    assert len(conditions[""]) == 22
    assert conditions["In use"] == "until the job is done"
    assert conditions["Must begin by"].startswith("20")
    assert its["Arguments"].startswith("7, password='***', note='hi hi")
    assert listings(found)["Arguments"].endswith("'")
    assert cells(found, "Result")[""] == "scheduled"
    assert "hunter2" not in str(found.elements)


def test_tags_link_to_the_jobs_that_have_them(mail, boss):
    result = enqueued(tags=["<b>billing</b>", "order:42"])
    found = look(boss, result.id)
    assert cells(found, "Job in mail")[""].endswith("First jobs of mail #<b>billing</b> #order:42")
    links = [one.attributes["href"] for one in found.find("a") if one.words == "#order:42"]
    assert [one.words.split()[0] for one in page(boss.get(links[0])).find("th") if "#order:42" in one.words] == [
        result.id
    ]


def test_running_job_links_to_the_workers(mail, boss):
    result = enqueued()
    attempt(mail)
    assert [one.words for one in look(boss, result.id).find("a") if one.attributes["href"].endswith("/workers/")][
        -1
    ] == "w1"


def test_page_says_how_often_a_job_snoozed_and_why(mail, boss):
    id = enqueued().id
    for number in range(2):
        (job,) = mail.claim(worker="w1")
        mail.run_flow(claim.snooze(mail, job, 60, expires=0, why=f"token=hunter{number}", ttl_ms=EVER))
        mail.run_now(id)
    found = look(boss, id)
    row = cells(found, "Run later at its task's request")
    assert row[""] == "2"
    assert "hunter" not in row["Reason"]


def test_page_names_the_jobs_beside_it_in_a_process_that_died(mail, boss):
    ids = mail.put_many([1, 2])
    mail.claim(2, worker="w1")
    mail.run_flow(died(mail, "w1", ids, [("mail", ids[0]), ("mail", ids[1]), ("news", "other")]))
    mail.claim(1, worker="w2")
    mail.run_flow(died(mail, "w2", ids[:1]))
    found = look(boss, ids[0], "mail")
    assert cells(found, "Job in mail")["Crashes"] == "2 alone in 1 of them"
    beside = rows(found, "Jobs beside it in a process that died")
    assert [(row[""], row["Queue"]) for row in beside] == [(ids[1], "mail"), ("other", "news")]
    assert cells(look(boss, ids[1], "mail"), "Job in mail")["Crashes"] == "1 alone in 0 of them"


def died(queue, worker, ids, beside=()):
    yield calls.reap(queue.key(""), worker, ids, beside)


def test_job_that_snoozed_is_due_at_its_next_start_although_it_expires(mail, boss):
    id = enqueued().id
    (job,) = mail.claim(worker="w1")
    mail.run_flow(claim.snooze(mail, job, 3600, expires=86_400_000, why="", ttl_ms=EVER))
    (listed,) = mail.peek(state="scheduled")
    found = mail.get(id)
    assert found.due == listed.due > job.due + 3000
    assert (found.died, listed.died) == (None, None)


def test_attempts_have_times_workers_and_tracebacks(mail, boss):
    result = enqueued()
    attempt(mail, "builtins.ValueError")
    attempt(mail, "shop.errors.Sold", worker="w2", text="shop.errors.Sold: it <b>is</b> gone", most=2)
    found = look(boss, result.id)
    assert cells(found, "Job in mail")["Attempts"] == "2"
    latest, first = rows(found, "Attempts, the latest first")
    assert (first[""], first["Worker"], first["Error"]) == ("1", "w1", "ValueError token=***")
    assert (latest[""], latest["Worker"]) == ("2", "w2")
    assert not [one for one in found.find("a") if one.words in ("w1", "w2")]  # by now they may have ended
    assert latest["Error"] == "shop.errors.Sold it <b>is</b> gone"
    texts = listings(found)
    assert texts["Traceback of attempt 1"].splitlines()[-1] == "ValueError: token=***"
    assert texts["Traceback of attempt 2"].splitlines()[1:] == ['  File "x.py"', "shop.errors.Sold: it <b>is</b> gone"]
    assert cells(found, "Result")[""] == "dead"


def test_error_of_an_attempt_is_its_first_line_not_the_end_of_its_message(mail, boss):
    result = enqueued()
    attempt(mail, "builtins.ValueError", text="ValueError: bad\nJob 'X' of queue 'mail' (shop.tasks.pay) succeeded.")
    group = "  | ExceptionGroup: some (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | ValueError: a"
    attempt(mail, "builtins.ExceptionGroup", text=f"{group}\n    +------------------------------------")
    latest, first = rows(look(boss, result.id), "Attempts, the latest first")
    assert latest["Error"] == "ExceptionGroup some (1 sub-exception)"
    assert first["Error"] == "ValueError bad"


def test_attempts_are_counted_on_after_a_dead_job_was_retried(mail, boss):
    result = enqueued()
    attempt(mail, "builtins.ValueError", most=1)
    mail.requeue([result.id])
    attempt(mail, "builtins.KeyError", most=2)
    found = look(boss, result.id)
    assert cells(found, "Job in mail")["Attempts"] == "1 2 begun in all"
    assert found.find("h1")[0].words == f"Job {result.id}"
    assert [row["Error"].split(" ")[0] for row in rows(found, "Attempts, the latest first")] == [
        "KeyError",
        "ValueError",
    ]


def test_tracebacks_of_the_last_ten_attempts_are_cut_at_20_000_characters(mail, boss):
    result = enqueued()
    for number in range(12):
        attempt(mail, "builtins.ValueError", text="x" * 40_000 + f" {number}", most=99)
    found = look(boss, result.id)
    texts = listings(found)
    assert [name for name in texts if "attempt" in name] == [f"Traceback of attempt {n}" for n in range(12, 2, -1)]
    assert all(len(text) <= 20_001 for text in texts.values())
    assert texts["Traceback of attempt 12"].rstrip().endswith("x 11")
    assert len(rows(found, "Attempts, the latest first")) == 12


def test_call_that_has_ended_is_found_by_its_id_alone(mail, boss):
    result = enqueued()
    job = attempt(mail)
    value = payload.dumps({"sum": 12, "api_key": "hunter2", "text": "y" * 300}, "x")
    ended = Ack(0, job.token.encode(), job.id.encode(), value, EVER)
    mail.run_flow(claim.acknowledge(mail, "w1", [ended]))
    found = look(boss, result.id)
    assert cells(found, "Job in mail")["State"].startswith("successful 20")
    its = cells(found, "Result")
    assert its[""] == "successful"
    assert its["Return value"].startswith("{'sum': 12, 'api_key': '***', 'text': 'yy")
    assert listings(found)["Return value"].startswith("{'sum': 12, 'api_key': '***'")
    assert "hunter2" not in str(found.elements)
    assert "cancel" not in {name for name, _ in row_buttons(found)}


def test_progress_is_shown(mail, boss):
    result = enqueued()
    job = attempt(mail)
    told = payload.dumps([3, 10, "half, token=hunter2"], "x")
    STORE_PROGRESS(mail.key(""), *claim_of(job), told, EVER, job=job.id).run(connections.client())
    progress = cells(look(boss, result.id), "Result")["Progress"]
    assert progress.startswith("3 of 10 half, token=*** 20")


def test_waiting_job_is_cancelled_after_a_confirmation_as_its_result_says(mail, boss):
    result = enqueued()
    value = row_buttons(look(boss, result.id))["cancel", result.id]
    assert boss.post(CANCEL, {"row": value}).status_code == 200
    assert mail.counts().ready == 1
    response = boss.post(CANCEL, {"row": value, "confirmed": "1"})
    assert said(response) == ["Cancelled 1 job of mail."]
    assert LogEntry.objects.get().get_change_message().startswith(f"Cancel the job: mail, {result.id} – ")
    result.refresh()
    assert result.status.name == "FAILED"
    found = look(boss, result.id)
    assert cells(found, "Job in mail")["State"].startswith("cancelled 20")
    assert "Cancelled" in listings(found)["Cancellation"]
    again = boss.post(CANCEL, {"row": value, "confirmed": "1"})
    assert said(again)[-1] == "Nothing was done: no job is in this state any more."
    assert LogEntry.objects.count() == 1


def test_running_job_is_cancelled_by_its_worker(mail, boss):
    result = enqueued()
    attempt(mail)
    value = row_buttons(look(boss, result.id))["cancel", result.id]
    assert said(boss.post(CANCEL, {"row": value, "confirmed": "1"})) == [
        "Cancelled 1 job of mail. 1 is running; its worker stops it."
    ]
    assert cells(look(boss, result.id), "Job in mail")["State"] == "running w1 being cancelled"


def test_dead_job_and_one_of_no_task_are_not_cancelled(mail, boss):
    put(mail, "dead", "shop.tasks.send")
    mail.nack(*mail.claim(), max_attempts=1)
    mail.put({"no": "task"}, id="plain")
    for id in ("dead", "plain"):
        assert "cancel" not in {name for name, _ in row_buttons(look(boss, id, "mail"))}
    assert said(boss.post(CANCEL, {"row": "mail/dead", "confirmed": "1"}))[0].startswith("Nothing was done")


def test_permission_is_needed(mail, signed_in):
    result = enqueued()
    client = signed_in("view_dashboard")
    found = look(client, result.id)
    assert "Job in " not in str(found.elements)
    assert client.post(CANCEL, {"row": f"mail/{result.id}", "confirmed": "1"}).status_code == 403
    assert mail.counts().ready == 1


def test_groups_of_dead_jobs_link_to_the_latest_with_the_permission(mail, signed_in):
    result = enqueued()
    attempt(mail, "builtins.ValueError", most=1)

    def links(client):
        return [one.attributes["href"] for one in page(client.get(PAGE)).find("a") if one.words == result.id]

    (href,) = links(signed_in("view_dashboard", "manage_queues"))
    assert href == f"{PAGE}?queue=mail&id={result.id}"
    assert cells(page(signed_in("superuser").get(href)), "Job in mail")[""].startswith(result.id)
    assert links(signed_in("view_dashboard")) == []


def test_page_of_a_deleted_job_says_that_its_result_alone_is_left(mail, boss):
    result = enqueued()
    attempt(mail, "builtins.ValueError", most=1)
    assert GONE not in cells(look(boss, result.id), "Job in mail")["State"]
    boss.post(f"{PAGE}do/delete/", {"row": f"mail/{result.id}", "confirmed": "1"})
    assert cells(look(boss, result.id), "Job in mail")["State"].endswith(GONE)


def test_garbage_in_the_result_is_shown_as_far_as_it_goes(mail, boss, kit):
    result = enqueued()
    attempt(mail, "builtins.ValueError")
    key = mail.key(f"result:{result.id}")
    for field, value in [
        ("error1", "\x00 no json"),
        ("progress", "x y"),
        ("status", "SOMETHING"),
        ("at", "never"),
        ("value", "}"),
        ("record", "x"),
    ]:
        kit.client.hset(key, field, value)
    kit.client.hset(mail.key("owners"), result.id, "nonsense")
    assert cells(look(boss, result.id), "Result")[""] == "ready"
    kit.client.hset(mail.key("jobs"), result.id, "0 0 0 999999999999999999\n~1/1/x " + "9" * 13 + "/w\n{}")
    assert cells(look(boss, result.id), "Job in mail")
    mail.purge("ready")
    found = look(boss, result.id)
    assert cells(found, "Job in mail")["State"] == f"SOMETHING {GONE}"
    kit.client.hset(key, "record", "0 1 0 5\n~1/1/x 5/w\n" + "x" * 400_000)
    assert cells(look(boss, result.id), "Job in mail")["State"] == f"SOMETHING {GONE}"


@pytest.mark.parametrize("attack", SAMPLE)
def test_jobs_and_their_errors_can_put_nothing_into_the_page(mail, signed_in, kit, attack):
    result = send.enqueue(attack, note=attack * 3)
    job = attempt(mail)
    told = payload.dumps([3, 10, attack[:500]], "x")
    STORE_PROGRESS(mail.key(""), *claim_of(job), told, EVER, job=job.id).run(connections.client())
    kept = payload.encoded([attack, attack * 9], "x")
    mail.run_flow(claim.fail(mail, job, 0, attack, 1, (kept, EVER)))
    mail.requeue([result.id])
    mail.claim(worker="w1")
    kit.client.hset(mail.key(f"result:{result.id}"), "cancelled", kept)
    found = whole_page(signed_in("superuser").get(PAGE, {"id": result.id}))
    assert harmless_links(found)
    shape = str(without_titles(found.shape))
    assert "onerror" not in shape
    assert "'b'" not in shape
    assert len(found.find("pre")) >= 2


@pytest.mark.parametrize("id", ["a.b", "x.%2F", "x.", "x.." * 9, ".", "x." + "2F" * 50, "a\0b"])
def test_id_of_any_kind_is_looked_up_without_an_error(mail, boss, id):
    found = look(boss, id)
    assert not found.find("p", class_="rk-error")
    assert found.find("h2")[0].words.startswith(("Job in ", "Looked up"))


def test_job_page_is_in_the_language_of_its_viewer(mail, boss):
    result = enqueued()
    attempt(mail, "builtins.ValueError")
    with translation.override("zh-hans"):
        text = boss.get(PAGE, {"id": result.id}).content.decode()
    words = text.partition("<main")[2]
    for one in ("Traceback of", "Attempts", "Result", "Unique", "Progress", "Return", "Must begin", "Cancel", "itself"):
        assert one not in words


@pytest.mark.once
def test_page_of_a_job_can_be_read(visit, monkeypatch, mail):
    own = ("redis_kit.queues.component.Queues", "redis_kit.dashboard.component.Dashboard")
    monkeypatch.setattr(component, "BUILTIN", own)
    result = enqueued()
    attempt(mail, "builtins.ValueError", text="a line that is long " * 50, most=1)

    def see(page):
        page.get_by_role("link", name=result.id).click()
        page.wait_for_selector("text=Job in mail")
        for one in page.locator("summary:visible").all():
            one.click()
        assert page.locator("pre:visible").count() == 2
        assert layout_problems(page) == []
        page.get_by_role("button", name=f"Retry: {result.id}").press("Enter")
        page.wait_for_selector(".messagelist")

    visit(see, start=PAGE)
    assert mail.get(result.id).state == "ready"
