"""The Redis users of docs/howto/acl.md may do all that redis_kit does, and no command in the lists is superfluous."""

import asyncio
import contextlib
import logging
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import NoPermissionError

from redis_kit.autocomplete import Autocomplete, RecentList
from redis_kit.bloom import BloomFilter
from redis_kit.bloom.inspection import filters
from redis_kit.core import connections, scripts
from redis_kit.core.checks import servers
from redis_kit.core.component import components
from redis_kit.core.errors import PermissionDenied
from redis_kit.core.indexes import model_index
from redis_kit.locks import FairLock, Lock, ReadWriteLock, Semaphore
from redis_kit.locks.compat import Lock as CompatLock
from redis_kit.locks.inspection import held_locks
from redis_kit.logs import Logs, RedisHandler
from redis_kit.logs.buffer import buffer as log_records
from redis_kit.mailbox import Chat, Chats, Inbox
from redis_kit.mailbox.inspection import read_mailboxes
from redis_kit.pageviews import PageViews, flush
from redis_kit.queues import Queue
from redis_kit.queues.inspection import list_workers, queue_names, queue_stats
from redis_kit.search import Facet, SearchIndex, Sort, Text
from redis_kit.throttling import Throttle
from redis_kit.throttling.strategies.base import STRATEGIES
from tests.app.models import Page, User
from tests.fixtures.process import client
from tests.queues.conftest import COMMAND, environment
from tests.queues.support import tasks
from tests.queues.support.journal import Journal
from tests.queues.support.processes import end
from tests.signins.people import numbers, saved

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "acl.md"
COMPONENTS = (
    *("autocomplete", "bloom", "locks", "logs", "mailbox"),
    *("pageviews", "queues", "search", "signins", "throttling"),
)
SHARED = {**dict.fromkeys(("bloom", "autocomplete", "search"), "indexes"), "mailbox": "channels.py"}  # of the core
OF_ROWS = {"announce", "commit", "drain"}  # scripts of indexes of rows
EVERYWHERE = {"PING", "SELECT", "EVALSHA", "EVAL", "TIME", "TYPE"}
OF_CHECKS = {"INFO"}
OF_CLUSTER = ["+cluster|slots", "+asking"]
IN_LUA = re.compile(r'redis\.p?call\(\s*"([A-Z_]+)"')
IN_PYTHON = re.compile(r'\b(?:Call|call|block|send)\(\s*"([A-Z_]+)"|"(BLPOP)"')
CHOSEN = re.compile(r"redis\.p?call\(([a-z]\w*)")  # a command whose name is in a variable


def commands_of(component: str) -> set[str]:
    """Return the commands in the scripts and modules of a component."""
    folders = [ROOT / "redis_kit" / component]
    folders += [ROOT / "redis_kit" / "core" / SHARED[component]] if component in SHARED else []
    modules = [path for folder in folders for path in (folder.rglob("*.py") if folder.is_dir() else [folder])]
    sent = {"BLPOP"} if any("Pop(" in path.read_text() for path in modules) else set()
    for path in (path for folder in folders for path in folder.rglob("*.lua")):
        if component == "bloom" and path.stem in OF_ROWS:
            continue
        sent |= set(IN_LUA.findall(path.read_text()))
        if not path.name.startswith("_"):
            package = ".".join(path.parent.parent.relative_to(ROOT).parts)
            source = scripts.load(package, path.stem).source
            sent |= set(IN_LUA.findall(source))
            for name in CHOSEN.findall(source):
                sent |= set(re.findall(r'"([A-Z]{3,})"', " ".join(re.findall(rf"local {name} = (.*)", source))))
    for path in modules:
        sent |= {name for pair in IN_PYTHON.findall(path.read_text()) for name in pair if name}
    return {"MEMORY|USAGE" if name == "MEMORY" else name for name in sent}


def rules(number: int = 0) -> list[str]:
    """Return the rules of a user on the page: for all components, for none of them alone, and for Sentinels."""
    return re.findall(r"^ACL SETUSER \w+ on >secret (.*)$", PAGE.read_text(), re.MULTILINE)[number].split()


def rules_of_components() -> dict[str, list[str]]:
    """Return the rules that the line of each component adds."""
    lines = re.findall(r"^ACL SETUSER site (~rk:\{(\w+)[:}].*)$", PAGE.read_text(), re.MULTILINE)
    return {component: line.split() for line, component in lines}


def patterns_of_components() -> list[str]:
    """Return the patterns of keys and channels in these lines."""
    return [rule for line in rules_of_components().values() for rule in line if rule[0] in "~&"]


def test_line_of_each_component_adds_its_commands():
    added = {
        component: {rule[1:].upper() for rule in line if rule[0] == "+"}
        for component, line in rules_of_components().items()
    }
    assert added == {component: commands_of(component) - EVERYWHERE for component in COMPONENTS}
    declared = {component.label: component.commands.upper().split() for component in components() if component.commands}
    assert declared == {component: sorted(commands) for component, commands in added.items()}
    assert {rule[1:].upper() for rule in rules(1) if rule[0] == "+"} == EVERYWHERE


def test_first_user_has_the_commands_of_all_components_and_no_other():
    needed = set().union(*map(commands_of, COMPONENTS)) | EVERYWHERE | OF_CHECKS
    assert {rule[1:].upper() for rule in rules() if rule[0] == "+"} == needed


@pytest.mark.parametrize("server", ["valkey", "debian_redis", "sentinel", "cluster"])
@pytest.mark.django_db(transaction=True)
def test_every_component_and_a_worker_run_with_these_commands_and_keys(request, kit, server, tmp_path, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    kit.server = request.getfixturevalue(server)
    user = {"USERNAME": kit.prefix, "PASSWORD": "secret"}
    patterns = [pattern.replace("rk:", f"{kit.prefix}:") for pattern in patterns_of_components()]
    chosen = [rule for rule in rules() if rule[0] not in "~&"] + patterns + [f"~{kit.prefix}:{{project}}"]
    with contextlib.ExitStack() as stack:
        servers_of_data = getattr(kit.server, "nodes", None) or [getattr(kit.server, "primary", kit.server)]
        sentinels = [client(each.url) for each in getattr(kit.server, "sentinels", ())]
        admins = [each.client() for each in servers_of_data] + sentinels
        for admin in map(stack.enter_context, admins):
            granted = rules(-1) if admin in sentinels else chosen + OF_CLUSTER * (server == "cluster")
            about = ["+client|setinfo"] if "valkey_version" in admin.info() else []
            admin.execute_command("ACL", "SETUSER", kit.prefix, "on", ">secret", *granted, *about)
            stack.callback(admin.execute_command, "ACL", "DELUSER", kit.prefix)
        inner = {"SENTINEL_KWARGS": {"username": kit.prefix, "password": "secret"}} if sentinels else {}
        kit.connect({**kit.server.connection, **user, **inner})
        _use_all()
        with _worker(kit, Journal(tmp_path / "journal")):
            _use_tasks()
        connections.close()
        log = [_entry(fields) for admin in admins for fields in admin.execute_command("ACL", "LOG")]
    assert [entry for entry in log if entry["username"] == kit.prefix] == []


@pytest.mark.django_db
def test_user_for_page_views_alone_can_count_and_read_them(kit):
    kit.client.execute_command("ACL", "SETUSER", kit.prefix, "on", ">secret", *rules(1))
    added = [rule.replace("~rk:", f"~{kit.prefix}:") for rule in rules_of_components()["pageviews"]]
    kit.client.execute_command("ACL", "SETUSER", kit.prefix, *added)
    kit.connect(
        {**kit.server.connection, "USERNAME": kit.prefix, "PASSWORD": "secret"}, PAGEVIEWS={"ON_FAILURE": "raise"}
    )
    _count_views()
    with pytest.raises(PermissionDenied, match="Redis refused access") as error:
        Queue("events").put(1)
    keys = f"The component 'queues' uses the keys ~{kit.prefix}:{{queues*."
    assert str(error.value).endswith(
        f"manage.py rk_doctor and ACL LOG name what is missing; see docs/howto/acl.md. {keys}"
    )
    with pytest.raises(PermissionDenied, match="The component 'locks' uses the keys"):
        asyncio.run(Lock("a").aacquire())
    kit.client.execute_command("ACL", "DELUSER", kit.prefix)


def test_user_for_locks_of_redis_py_can_use_them(kit):
    commands = [f"+{name.lower()}" for name in commands_of("locks") | EVERYWHERE]
    also, first, second = re.search(
        r"locks.compat.*\| `(.*?)`, and .*`(~\S+) (~\S+)` \|$", PAGE.read_text(), re.MULTILINE
    ).groups()
    name = f"{kit.prefix}:report"
    patterns = [first.replace("report", name), second.replace("report", name)]
    kit.client.execute_command(
        "ACL", "SETUSER", kit.prefix, "on", ">secret", *patterns, *commands, f"+{also}".replace("\\", "")
    )
    with client(kit.url, username=kit.prefix, password="secret") as limited:
        with CompatLock(limited, name, timeout=5) as lock:
            lock.extend(5)
            assert CompatLock(limited, name, timeout=5).acquire(blocking_timeout=0.1) is False
        with pytest.raises(NoPermissionError):
            limited.get("other")
    kit.client.execute_command("ACL", "DELUSER", kit.prefix)


def _entry(fields: Any) -> dict[str, Any]:
    return fields if isinstance(fields, dict) else dict(zip(fields[::2], fields[1::2], strict=True))


@contextlib.contextmanager
def _worker(kit: Any, journal: Journal) -> Iterator[None]:
    process = subprocess.Popen(COMMAND, cwd=ROOT, env=environment(kit.settings, journal))
    try:
        yield
    finally:
        end(process)


def _use_all() -> None:
    with Lock("a", renew=True), FairLock("b"), ReadWriteLock("c").read, Semaphore("d", limit=2) as lease:
        assert Lock("a").acquire(blocking_timeout=0.01) is None
        assert held_locks()
        lease.extend()
    for strategy in STRATEGIES:
        throttle = Throttle(strategy, rates="5/m", strategy=strategy)
        assert throttle.hit("ann").allowed
    throttle.rules.ban("ann", 60)
    assert throttle.rules.lift("ann")
    throttle.offenders()
    assert throttle.reset("ann")
    _count_views()
    seen = BloomFilter("seen", 10)
    assert seen.add_many(range(15))
    assert seen.rebuild([1]) == sum(seen.contains_many([1])) == seen.info().items
    assert filters.read_all("default").total == 1
    seen.distrust()
    assert seen.clear()
    people = Autocomplete("people")
    assert people.add_many((id, f"Anna {id}") for id in range(20)) == len(people.search("ann", 20)) == 20
    assert people.rebuild([(1, "Anna")]) == people.use(1) == people.info().entries == 1
    assert people.remove(1)
    assert people.clear()
    recent = RecentList("people", 1)
    recent.add("Anna")
    assert recent.all()
    assert recent.remove("Anna") > recent.clear()
    _search()
    office = Chat("office")
    assert office.create(["anna", "ben"])
    number = office.send("anna", "hi", client_id="a")
    assert office.fetch("ben", timeout=1).messages[0].number == office.send("anna", "hi", client_id="a") == number
    office.edit(number, "hello")
    assert office.fetch("ben", timeout=0.1, after=number).messages == []
    assert (office.ack("ben", number), office.read_by(number), Chats("anna").unread()) == (1, ["ben"], {"office": 1})
    assert len(office.members()) == 2
    inbox = Inbox("anna")
    inbox.push("hi", client_id="a")
    assert inbox.pull(timeout=0.1).messages
    assert inbox.pull(timeout=0.1).messages == []
    assert inbox.unread() == len(inbox.peek().messages) == inbox.ack(inbox.peek().messages)
    assert office.run_flow(read_mailboxes(10)).chats == 1
    office.clear()
    user, today = saved(next(numbers)), datetime.now(UTC).date()
    user.sign_in()
    assert user.sign_in_calendar(today.year, today.month).marks[today.day - 1]
    assert User.sign_ins.active(today) == user.sign_in_streak() == user.sign_in_count() == 1
    logger = logging.Logger("shop")
    logger.addHandler(RedisHandler())
    logger.error("Order %d failed", 1)
    assert log_records.flush()
    assert Logs().recent()
    assert Logs().fingerprint(Logs().common()[0].fingerprint)
    queue = Queue("events")
    queue.put(1, unique="a")
    queue.put(2, delay=timedelta(seconds=60), id="b")
    assert queue.nack(queue.claim()[0], max_attempts=1) == "dead"
    assert queue.run_now("b")
    assert queue.requeue(limit=5)
    assert queue.cancel("b")
    queue.pause(60)
    assert queue.paused()
    assert queue.resume()
    assert queue.peek()
    assert queue.purge("ready")
    assert {problem.id for problem in servers.problems("default")} <= {"W010", "W011", "W014"}


def _search() -> None:
    class PageIndex(SearchIndex):
        model = Page
        title = Text()
        tags = Facet()
        votes = Sort()

    index, page = PageIndex.instance, Page.objects.create(title="a fair lock", tags=["db"])
    assert index.rebuild() == 1
    page.title = "a fair semaphore"
    page.save()
    result = PageIndex.search('fair "fair semaphore" -java', boost={"votes": 0.1}, facets=("tags",), tags="db")
    assert (result.source, result.ids, len(result.explain(page.pk))) == ("index", [page.pk], 3)
    assert PageIndex.search("lok a", fuzzy=True, order="votes").source == "index"
    assert index.info().documents == 1
    page.delete()
    assert index.clear()


def _count_views() -> None:
    page = PageViews("shop", 1)
    assert page.add("ann")
    assert flush()
    assert page.views() == sum(hour.views for hour in page.by_hour()) == 1
    assert page.overlap(page).common == 1
    assert page.visitors() == 1
    assert PageViews.site().top() is not None


def _use_tasks() -> None:
    result = tasks.note.enqueue("one")
    assert result.wait_until_finished(timeout=30)
    assert queue_names()
    assert queue_stats(["default"])
    assert list_workers(["default"])
    assert not tasks.note.using(run_after=timedelta(hours=1)).enqueue("two").wait_until_finished(timeout=0.01)
