"""The options of the queues."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from redis_kit.core import conf
from redis_kit.core.conf import Problem, Section
from redis_kit.core.errors import InvalidName, InvalidRate
from redis_kit.core.keys import BUCKETS, encode
from redis_kit.core.text import did_you_mean, number
from redis_kit.core.values import rates

QUEUE_OPTIONS = "REDIS_KIT['QUEUES']['QUEUE_OPTIONS']"
CELERY = "celery"  # the sink that is named by a word
SHARD = "#"  # stands between the name of a queue and the bucket of a shard


@dataclass(frozen=True)
class QueueOptions(Section):
    """The options of one queue: an entry of ``REDIS_KIT["QUEUES"]["QUEUE_OPTIONS"]``."""

    ranges = {
        **dict.fromkeys(("CONCURRENCY", "GROUP_CONCURRENCY"), (1, 1_000_000)),
        "DONE_LIMIT": (0, 100_000),
        "SHARDS": (1, len(BUCKETS)),
    }

    #: Which system runs the jobs that are due: ``"celery"``, or the dotted path of a ``Sink``. Without it, the workers
    #: of this queue run them.
    SINK: str = ""
    #: The queue of Celery that gets the jobs, with ``"SINK": "celery"``. Without it, the routes of Celery decide.
    CELERY_QUEUE: str = ""

    #: Jobs of the queue that may run at once, in all workers together.
    CONCURRENCY: int | None = None
    #: The rate at which jobs of the queue start, such as ``"100/s"``.
    RATE: str = ""
    #: Jobs of each group that may run at once.
    GROUP_CONCURRENCY: int | None = None
    #: The rate at which jobs of each group start.
    GROUP_RATE: str = ""

    #: Slots of a Cluster over which the jobs of the queue are spread, 1 to 16. Keep the option while a smaller number,
    #: such as 1, replaces a larger one: workers then also run what is left in the other shards.
    SHARDS: int = 1

    #: Done jobs kept for the list of jobs, about as many: the latest ones of the queue, or of each shard. 0 keeps none.
    DONE_LIMIT: int = 0

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of rates, of shards with a limit, and of a sink that is not a word or a dotted path."""
        for name in ("RATE", "GROUP_RATE"):
            try:
                several = rates.parse(getattr(self, name) or None)
            except InvalidRate as error:
                yield Problem("E006", f"['{name}'] is wrong. {error}")
                continue
            if len(several) > 1 or any(rate.burst != rate.limit for rate in several):
                yield Problem("E006", f"['{name}'] must be one rate without a burst.", "Write it as '10/s'.")
        for name in ("CONCURRENCY", "RATE"):
            if self.SHARDS > 1 and getattr(self, name):
                wrong = f"['{name}'] can't be used with SHARDS, as no script sees the jobs of all shards."
                hint = f"Remove one of the two, or use 'GROUP_{name}': all jobs of a group are in one shard."
                yield Problem("E006", wrong, hint)
        if self.SINK and self.SINK != CELERY and not _is_path(self.SINK):
            hint = did_you_mean(self.SINK, [CELERY], "For instance 'celery', or 'shop.sinks.Elsewhere'.")
            wrong = f"['SINK'] is {self.SINK!r}; it must be 'celery' or the dotted path of a Sink."
            yield Problem("E006", wrong, hint)


@dataclass(frozen=True)
class QueueSettings(Section):
    """The options of ``REDIS_KIT["QUEUES"]``."""

    name = "QUEUES"
    ranges = {
        "HEARTBEAT_INTERVAL": (0.05, 60),
        "WORKER_TIMEOUT": (0.2, 3600),
        "MAX_ATTEMPTS": (1, 1000),
        "RETRY_BACKOFF": (0, 86_400),
        "RETRY_BACKOFF_MAX": (0, 31_536_000),
        "UNKNOWN_TASK_TTL": (0, 31_536_000),
        "MAX_CRASHES": (1, 100),
        "DEAD_LIMIT": (1, 1_000_000),
        "RESULT_TTL": (1, 31_536_000),
        "FAILED_RESULT_TTL": (1, 31_536_000),
    }

    #: Queues that the dashboard shows from the start, and that a worker without ``--queue-name`` works on first. Other
    #: queues appear on the dashboard when they are used; this worker then works on those that tasks name.
    NAMES: list[str] | tuple[str, ...] = ("default",)
    #: The options of single queues, by name, such as ``{"mail": {"SINK": "celery", "RATE": "100/s"}}``.
    #: ``CONCURRENCY`` and ``RATE`` limit all jobs of the queue, ``GROUP_CONCURRENCY`` and ``GROUP_RATE`` those of each
    #: group.
    QUEUE_OPTIONS: Mapping[str, Any] = field(default_factory=dict)
    #: The dotted path of the Celery app, such as ``"mysite.celery.app"``. Without it, the app is used that the
    #: project loads at its start.
    CELERY_APP: str = ""
    #: Modules with tasks that workers import, as dotted paths. They import ``tasks`` of each installed app anyway; name
    #: here any other module that defines tasks and that no ``tasks`` module imports, such as ``"shop.services"``.
    IMPORTS: list[str] | tuple[str, ...] = ()
    #: Middleware around each attempt of a job, and around ``enqueue()``, as dotted paths: the outermost one comes
    #: first, such as ``"shop.middleware.TenantMiddleware"``.
    MIDDLEWARE: list[str] | tuple[str, ...] = ()
    #: Seconds between two heartbeats of a worker.
    HEARTBEAT_INTERVAL: float = 2.0
    #: Seconds without a heartbeat after which a worker counts as dead. Other workers then run its jobs.
    WORKER_TIMEOUT: float = 10.0
    #: Failed attempts after which a job is dead, unless its task sets ``max_attempts``. With the default delays, a task
    #: that needs another service survives an outage of that service of more than an hour.
    MAX_ATTEMPTS: int = 11
    #: Seconds to wait after the first failed attempt, doubled with each further attempt, unless the task sets
    #: ``backoff``. The delay is random, between half of that and all of it.
    RETRY_BACKOFF: float = 10.0
    #: The longest delay in seconds.
    RETRY_BACKOFF_MAX: float = 3600.0
    #: Seconds for which a job waits for a worker that knows its task, and whose function takes its arguments, as in a
    #: deploy. A worker that meets the job later buries it. 0 means at once.
    UNKNOWN_TASK_TTL: float = 86_400.0
    #: Processes that may die while a job runs alone in them, before the job itself is dead.
    MAX_CRASHES: int = 3
    #: Dead jobs kept for each queue. The oldest make room for new ones, and any job is deleted after 30 days.
    DEAD_LIMIT: int = 10_000
    #: Seconds for which the result of a task that succeeded is stored.
    RESULT_TTL: float = 86_400.0
    #: Seconds for which the result of a task that failed is stored.
    FAILED_RESULT_TTL: float = 1_209_600.0
    #: The alias of a database, such as ``"default"``. Tasks are then enqueued through a table of that database, so that
    #: none is lost between the commit and Redis. By default only tasks with ``outbox=True`` are.
    OUTBOX: str = ""

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the heartbeat, the retries, the names and the imports."""
        if self.HEARTBEAT_INTERVAL >= self.WORKER_TIMEOUT / 2:
            yield Problem(
                "E007",
                f"REDIS_KIT['QUEUES']['HEARTBEAT_INTERVAL'] is {self.HEARTBEAT_INTERVAL:g} s; it must be less than "
                f"half of WORKER_TIMEOUT ({self.WORKER_TIMEOUT:g} s), or one late heartbeat costs a living worker its "
                "jobs.",
                "Make WORKER_TIMEOUT five times HEARTBEAT_INTERVAL.",
            )
        if self.RETRY_BACKOFF > self.RETRY_BACKOFF_MAX:
            yield Problem(
                "E006",
                f"REDIS_KIT['QUEUES']['RETRY_BACKOFF'] is {number(self.RETRY_BACKOFF)} s; it must not be more "
                f"than RETRY_BACKOFF_MAX ({number(self.RETRY_BACKOFF_MAX)} s).",
                "Make RETRY_BACKOFF smaller, or RETRY_BACKOFF_MAX larger.",
            )
        for queue in self.NAMES:
            try:
                check_name(queue)
            except InvalidName as error:
                yield Problem("E006", f"REDIS_KIT['QUEUES']['NAMES'] holds a name that can't be used. {error}")
        yield from _queue_problems(self.QUEUE_OPTIONS)
        databases = list(settings.DATABASES) if self.OUTBOX else []
        if self.OUTBOX and self.OUTBOX not in databases:
            hint = did_you_mean(self.OUTBOX, databases, f"It has {', '.join(map(repr, databases))}.")
            yield Problem(
                "E018",
                f"REDIS_KIT['QUEUES']['OUTBOX'] is {self.OUTBOX!r}, but DATABASES has no alias of that name.",
                hint,
            )
        if self.CELERY_APP and not _is_path(self.CELERY_APP):
            wrong = f"REDIS_KIT['QUEUES']['CELERY_APP'] is {self.CELERY_APP!r}, which is not a dotted path."
            yield Problem("E006", wrong, "Write it as in an import, such as 'mysite.celery.app'.")
        for name, kind, example, parts in (
            ("MIDDLEWARE", "middleware", "shop.middleware.TenantMiddleware", 2),
            ("IMPORTS", "module", "shop.services", 1),
        ):
            for path in getattr(self, name):
                if not _is_path(path, parts=parts):
                    wrong = f"REDIS_KIT['QUEUES']['{name}'] holds {path!r}, which is not the dotted path of a {kind}."
                    yield Problem("E006", wrong, f"Write it as in an import, such as '{example}'.")


def options_of(queue: str) -> QueueOptions:
    """Return the options of a queue, given by its name or that of a shard. Raises ConfigurationError."""
    entries = conf.section(QueueSettings).QUEUE_OPTIONS
    given = entries.get(whole(queue)) if entries else None
    return QueueOptions(**given) if given else DEFAULTS


def whole(name: str) -> str:
    """Return the name of the queue whose shard has this name; any other name as it is."""
    queue, separator, bucket = name.rpartition(SHARD)
    return queue if separator and queue and bucket in BUCKETS else name


def check_name(queue: str) -> None:
    """Raise InvalidName unless a queue can have this name."""
    encode(queue)
    if (of := whole(queue)) != queue:
        wrong = f"{queue!a} is the name of a shard of the queue {of!a}."
        raise InvalidName(f"{wrong} Write {of!a}, or give the queue another name.")


def _queue_problems(entries: Mapping[str, Any]) -> Iterator[Problem]:
    for queue, given in entries.items():
        where = f"{QUEUE_OPTIONS}[{queue!r}]"
        try:
            check_name(queue)
        except InvalidName as error:
            yield Problem("E006", f"{QUEUE_OPTIONS} holds a name that can't be used. {error}")
            continue
        if not isinstance(given, Mapping):
            hint = f"Write a dict with some of its options: {', '.join(conf.options(QueueOptions))}."
            yield Problem("E002", f"{where} is {conf.described_value(given)}; it must be a dict.", hint)
            continue
        yield from conf.mismatches(QueueOptions, where, given)
        for problem in QueueOptions(**conf.without_mismatches(QueueOptions, given)).problems():
            yield problem._replace(message=f"{where}{problem.message}")


def _is_path(text: str, *, parts: int = 2) -> bool:
    """Return whether a text is a dotted path of as many parts, at least."""
    names = text.split(".")
    return len(names) >= parts and all(name.isidentifier() for name in names)


DEFAULTS = QueueOptions()
