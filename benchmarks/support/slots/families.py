"""The keys of the kit, as it builds them: those that names spread over a Cluster, and those that stay in one slot."""

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from redis_kit.autocomplete import Autocomplete, RecentList
from redis_kit.bloom import BloomFilter
from redis_kit.core.keys import BUCKETS, bucket_of
from redis_kit.locks import Lock
from redis_kit.mailbox import Chat
from redis_kit.pageviews import keys as page_keys
from redis_kit.pageviews.pages import SITE, encoded
from redis_kit.queues import Queue
from redis_kit.queues.features.workflows.store import list_key, workflow_key
from redis_kit.queues.keys import names_key, relay_key
from redis_kit.signins import keys as sign_in_keys
from redis_kit.throttling import Throttle

MODEL = "auth.user"
TODAY = date(2026, 11, 23)

Key = Callable[[int], str]


class Fixed(NamedTuple):
    """A key that stays in one slot, when it is written, and what bounds its load."""

    key: str
    written: str
    bound: str


def families() -> dict[str, Key]:
    """Return what spreads by name: the key of each name, by its number."""
    login = Throttle("login", "5/m")
    return {
        "locks, by name": lambda n: Lock(f"invoice:{n}").keys().holder,
        "sign-ins, by user": _user,
        "queues, by name": lambda n: Queue(f"queue {n}").key("ready"),
        "queue-0, queue-1, ... to queue-7": lambda n: Queue(f"queue-{n % 8}").key("ready"),
        "queue-00 ... as in BUCKETS[:8]": lambda n: Queue(f"queue-{BUCKETS[n % 8]}").key("ready"),
        "workflows, by id": lambda n: workflow_key(f"{n:026}", "meta"),
        "throttles, by name": lambda n: Throttle(f"throttle {n}", "5/m").key("latest"),
        "identities of one throttle": lambda n: login.keys(f"user {n}").state,
        "recent lists, by owner": lambda n: RecentList("people", n).key("recent"),
        "chats and inboxes, by name": lambda n: Chat(f"room {n}").wake,
        "pages, by name": lambda n: page_keys.views(encoded(f"page {n}"), TODAY),
        "objects of one page": lambda n: page_keys.views(encoded("article", n), TODAY),
    }


def fixed() -> list[Fixed]:
    """Return what does not spread further."""
    queue, lock, throttle = Queue("mail"), Lock("invoice:42"), Throttle("login", "5/m")
    tag = sign_in_keys.tag(MODEL, BUCKETS[0])
    return [
        Fixed(queue.key("..."), "by each put, claim and ack", "the core of one node: divide the queue"),
        Fixed(throttle.key("..."), "by each decision", "the core of one node: divide the throttle"),
        Fixed(lock.keys().live, "by each acquire and release in its bucket", "16 buckets: 16 cores"),
        Fixed(
            sign_in_keys.active(tag, TODAY), "by each sign-in in its bucket", "16 buckets: 16 cores, and their memory"
        ),
        Fixed(page_keys.views(SITE, TODAY), "once a second by each process", "the number of processes"),
        Fixed(page_keys.pages(SITE, str(TODAY)), "once for each page, by each process", "MAX_PAGES"),
        Fixed(names_key(), "by each process, once for each queue", "1000 names"),
        Fixed(list_key("listed"), "by each workflow as it starts", "the core of one node"),
        Fixed(relay_key("default"), "each 5 s by each worker process", "the number of processes"),
        Fixed(BloomFilter("seen").key("..."), "by each call", "the core of one node: divide the filter"),
        Fixed(Autocomplete("people").key("..."), "by each search and change", "the core of one node: divide the index"),
        Fixed(
            "rk:{search:shop.ArticleIndex}:...", "by each search and each write", "the core and the memory of one node"
        ),
        Fixed(Chat("room").key("chats"), "by each message in its bucket", "16 buckets: 16 cores"),
        Fixed("rk:{logs}:...", "once a second by each process that logs", "the number of processes"),
        Fixed("rk:{queues-schedules}:...", "each 2 s by each supervisor, and with each tick", "the number of machines"),
    ]


def _user(number: int) -> str:
    member = sign_in_keys.member_of(str(number))
    return sign_in_keys.user(sign_in_keys.tag(MODEL, bucket_of(member)), member)
