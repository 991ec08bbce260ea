"""Something of each component, so that each page of the dashboard has rows, links and buttons."""

import json
import time
from typing import Any

from django.test import TestCase

from redis_kit.autocomplete import Autocomplete, ModelAutocomplete
from redis_kit.bloom import BloomFilter, ModelFilter
from redis_kit.core import connections
from redis_kit.core.indexes.generations import Generation
from redis_kit.locks import Lock, Semaphore
from redis_kit.locks.kinds.read_write_lock import ReadWriteLock
from redis_kit.mailbox import Chat, Inbox
from redis_kit.pageviews import PageViews, periods
from redis_kit.pageviews.batch import Event, ViewBatch, identified
from redis_kit.queues import Queue, chain, limits
from redis_kit.queues.engine import calls
from redis_kit.queues.features.workflows.store import list_key
from redis_kit.search import SearchIndex, Text
from redis_kit.testing.jobs import drain
from redis_kit.throttling import Throttle
from tests.app.models import Account, User
from tests.queues.support import scheduled, workflow_tasks
from tests.queues.support.putting import die, put

SINKS = {"parcels": {"SINK": "celery"}}
HELD: list[Any] = []  # leases and throttles, which end when nobody refers to them


def fill(kit: Any, text: str = "summer sale") -> None:
    """Fill the server of a kit. ``text`` is in each field that visitors or programs may choose."""
    kit.options(
        QUEUES={"NAMES": ["archive", "default", "mail"], "WORKER_TIMEOUT": 600, "QUEUE_OPTIONS": SINKS},
        THROTTLING={"REMEMBER": 0},
    )
    HELD[:] = [*_locks(text), _throttle(text)]
    _workflows()
    _schedules()
    _queues(text)
    _workers(text)
    _page_views(text)
    _filters(text)
    _search(text)
    _mailboxes(text)
    user = User(pk=7)
    user._state.adding = False
    user.sign_in()


def _filters(text: str) -> None:
    """Make indexes, and some of models. A test has to take those from the list of indexes."""
    BloomFilter(text[:100], 1000).add(text)
    ModelFilter(Account, capacity=1000).add_many([7])
    Autocomplete(text[:100]).add(1, text[:1000])
    ModelAutocomplete(User, ["username"]).index().add(7, "Anna")


def _search(text: str) -> None:
    """Make an index, ask it for something that it lacks, and let it wait for a change."""

    class AccountIndex(SearchIndex):
        model = Account
        name = Text()

    index, account, generation = AccountIndex.instance, Account(pk=7, name="ann"), Generation.new().id
    index.store.run_flow(index.generations.start(generation))
    connections.client().call("SET", index.writer_key, "w")
    index.write({"7": index.document(account)}, [], "w", generation)
    index.store.run_flow(index.generations.switch(generation))
    connections.client().call("DEL", index.writer_key)
    AccountIndex.search(text)
    index.announce(account)
    connections.client().call("ZADD", index.store.key("slow"), int(time.time() * 1000), f"71 {text}"[:80])


def _mailboxes(text: str) -> None:
    chat = Chat(text[:100])
    chat.create([text[:100], "anna"])
    chat.send("anna", text)
    Inbox(text[:100]).push(text)


def _locks(text: str) -> list[Any]:
    return [
        Lock(text, timeout=300).acquire(),
        Lock(f"{text} 2", timeout=300).acquire(),
        Semaphore(text, 3, timeout=300).acquire(),
        Semaphore(text, 3, timeout=300).acquire(),
        Semaphore(f"{text} 2", 3, timeout=300).acquire(),
        ReadWriteLock(text, timeout=300).read.acquire(),
    ]


def _throttle(text: str) -> Throttle:
    throttle = Throttle("sales", "1/h")
    text = text[:40]  # of longer ones only the hash is kept
    for identity in (text, "ip:198.51.100.4"):
        throttle.hit(identity)
        throttle.hit(identity)
    throttle.rules.ban(f"user:{text}", 600)
    throttle.rules.exempt("user:8", 600)
    return throttle


def _queues(text: str) -> None:
    mail = Queue("mail")
    die(Queue("archive"), *["OSError: full"] * 20)
    Queue("archive").put_many([text, text, text], delay=600)
    die(mail, *[f"ValueError: {text}"] * 3, *["OSError: full"] * 12)
    put(mail, "p1", "shop.tasks.send", (text,), {text: text})
    mail.claim(worker="w1")
    mail.put_many([text, text, text], group="tenant:7")
    limits.set_limit("mail", "group=tenant:7", concurrency=1, rate="10/s")
    die(Queue("default"), "OSError: full")
    Queue("default").put(text)
    Queue("default").pause()


def _workers(text: str) -> None:
    said = {"host": text, "pid": 7, "supervisor": "s1", "supervisor_pid": 5, "threads": 4, "state": "working"}
    quiet, frozen = {**said, "supervisor": "s2", "state": "quiet"}, {**said, "unresponsive": 85}
    for worker, about in (("w1", said), ("w2", quiet), ("w3", {"host": text}), ("w4", frozen)):
        calls.heartbeat(Queue("mail").key(""), worker, json.dumps(about)).run(connections.client())
    ended = f"{time.time() - 60:.0f}000 3 8 5 {text}"
    connections.client().call("HSET", Queue("mail").key("lost"), "w5", ended)


def _schedules() -> None:
    task = workflow_tasks.work.module_path
    scheduled.declared(task, "hourly", every=3600, args=[7])
    scheduled.declared(task, "nightly", cron="0 4 * * *", timezone="Europe/Berlin")
    scheduled.declared(task, "off", every=60, enabled=False)
    scheduled.tick(scheduled.scheduler())


def _workflows() -> None:
    workflow_tasks.broken.clear()
    workflow_tasks.broken.add("fails")
    _start("fails")
    drain()
    _start("waits")
    connections.client().call("ZADD", list_key("listed"), 1, "expired")


def _start(value: str) -> None:
    with TestCase.captureOnCommitCallbacks(execute=True):
        chain(workflow_tasks.work.step(value), workflow_tasks.work.step("last")).enqueue()


def _page_views(text: str) -> None:
    moment = periods.now()
    events = [Event(moment, text, str(n), identified(f"v{n}"), "search.example", text) for n in range(3)]
    PageViews("any").run_flow(ViewBatch([*events, Event(moment, "front", "", "", bot=True)], using="default").send())
