"""The command that lists and changes the limits of a queue."""

import json

import pytest
from django.core.management import CommandError, call_command

from redis_kit.queues import Limit, Queue, task


@task(queue_name="mail", concurrency=1, limits=[Limit(rate="1/s", by=("tenant_id",))])
def limited(tenant_id: int) -> None:
    """A task with two limits."""


@pytest.fixture
def queue(kit):
    queue = Queue("mail")
    queue.put_many([1, 2, 3], group="tenant:7")
    return queue


def test_limit_is_changed_listed_and_reset(queue, capsys):
    call_command("rk_limit", "mail")
    assert capsys.readouterr().out == "mail has no limits.\n"
    call_command("rk_limit", "mail", "group=tenant:7", "--concurrency", "1", "--rate", "10/s")
    queue.claim(5, worker="w")
    call_command("rk_limit", "mail")
    said, head, row = capsys.readouterr().out.splitlines()
    assert said == "Changed: group=tenant:7, to concurrency 1 and rate 10/s."
    assert head.split() == ["QUEUE", "LIMIT", "CONCURRENCY", "RATE", "RUNNING", "WAITING", "NEXT", "CHANGED"]
    assert row.split()[:6] == ["mail", "group=tenant:7", "1", "10/s", "1", "1"]
    call_command("rk_limit", "mail", "--json")
    (limit,) = json.loads(capsys.readouterr().out)
    assert (limit["queue"], limit["name"], limit["running"]) == ("mail", "group=tenant:7", 1)
    assert limit["changed"] is True
    call_command("rk_limit", "mail", "group=tenant:7", "--reset")
    call_command("rk_limit", "mail")
    assert capsys.readouterr().out == "Reset: group=tenant:7.\nmail has no limits.\n"
    with pytest.raises(CommandError, match="was not changed"):
        call_command("rk_limit", "mail", "group=tenant:7", "--reset")


def test_limits_of_all_queues_are_listed(queue, capsys):
    call_command("rk_limit")
    assert capsys.readouterr().out == "No queue has limits.\n"
    Queue("news").put(1, group="a")
    for name in ("mail", "news"):
        call_command("rk_limit", name, "group=a", "--rate", "1/s")
    capsys.readouterr()
    call_command("rk_limit")
    _head, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:2] for row in rows] == [["mail", "group=a"], ["news", "group=a"]]
    call_command("rk_limit", "--json")
    assert [each["queue"] for each in json.loads(capsys.readouterr().out)] == ["mail", "news"]


def test_damaged_limits_do_not_hide_those_of_other_queues(kit, queue, capsys):
    call_command("rk_limit", "mail", "group=a", "--rate", "1/s")
    news = Queue("news")
    news.put(1)
    kit.client.set(news.key("parked"), "x")
    with pytest.raises(CommandError, match=r"1 of 3 queues can't be read"):
        call_command("rk_limit")
    output = capsys.readouterr()
    assert "group=a" in output.out
    assert "Queue news can't be read" in output.err


def test_change_of_the_rate_says_that_no_concurrency_is_left(kit, queue, capsys):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"GROUP_CONCURRENCY": 1}}})
    call_command("rk_limit", "mail", "group=*", "--rate", "10/s")
    assert capsys.readouterr().out == "Changed: group=*, to no limit of concurrency and rate 10/s.\n"


def test_unlimited_takes_the_place_of_the_settings(kit, queue):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"GROUP_CONCURRENCY": 1}}})
    queue.put(4, group="tenant:7")
    assert len(queue.claim(5, worker="w")) == 1
    call_command("rk_limit", "mail", "group=*", "--unlimited")
    assert len(queue.claim(5, worker="w")) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["group=a"], "to change a limit"),
        (["--reset"], "to change a limit"),
        (["group=a", "--json"], "to change a limit"),
        (["group=a", "--reset", "--rate", "1/s"], "to change a limit"),
        (["group=a", "--rate", "fast"], "Write a rate as"),
        (["tenant:7", "--concurrency", "1"], "The name of a limit is"),
        (["group=a", "--concurrency", "-1"], "'-1' is not a whole number between 0 and 1000000"),
        (["group=a", "--concurrency", "nan"], "'nan' is not a whole number between 0 and 1000000"),
    ],
)
def test_wrong_arguments_end_with_the_right_ones(queue, arguments, text):
    with pytest.raises(CommandError, match=text):
        call_command("rk_limit", "mail", *arguments)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (f"task={limited.module_path}x", f"Did you mean 'task={limited.module_path}'"),
        (f"task={limited.module_path}&tenant=7", rf"Did you mean 'task={limited.module_path}&tenant_id=\*'"),
        ("task=x", r"Limits: group=<name>, queue, "),
    ],
)
def test_misspelt_limit_is_an_error_that_names_the_known_ones(kit, queue, name, said):
    kit.options(QUEUES={"QUEUE_OPTIONS": {"mail": {"CONCURRENCY": 1}}})
    with pytest.raises(CommandError, match=rf"mail has no limit .*{said}"):
        call_command("rk_limit", "mail", name, "--rate", "1/s")


def test_limit_of_a_task_whose_jobs_are_yet_to_come_is_known(kit, queue, capsys):
    for name in (f"task={limited.module_path}", f"task={limited.module_path}&tenant_id=7"):
        call_command("rk_limit", "mail", name, "--rate", "1/s")
        assert "Changed" in capsys.readouterr().out


def test_unknown_queue_is_an_error(queue):
    with pytest.raises(CommandError, match="There is no queue 'mial'"):
        call_command("rk_limit", "mial")
