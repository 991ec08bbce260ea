"""Features of the queues: what each brings to tasks, workers, pages and checks.

A feature is a folder of ``redis_kit.queues.features`` and a line of the list there. Engine and workers ask all of the
list, and know none by its name. A feature imports its modules in its methods: one that nobody uses costs no import.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from threading import Event
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from django.core.checks import CheckMessage
from django.utils.module_loading import import_string

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.settings import DEFAULTS, options_of

FEATURES = "redis_kit.queues.features"


class Duty(Protocol):
    """Work that is due at some time.

    It raises RedisUnavailable and AuthenticationFailed: it runs again soon, and no other duty asks that server in the
    same turn.
    """

    @property
    def due(self) -> float:
        """Return when to run it next, on the monotonic clock; inf for not before something happens."""

    def run(self) -> None:
        """Do what is due, and set when it is due next."""


@runtime_checkable
class Listener(Protocol):
    """A duty that hears the replies to heartbeats of worker processes that claim jobs."""

    def heard(self, queue: Any, reply: Any) -> None:
        """Take the reply for a queue."""


class Supervision(Protocol):
    """A supervisor, as far as the duties of features use it."""

    id: str

    @property
    def options(self) -> Any:
        """Return the options of the worker."""

    @property
    def queues(self) -> Sequence[Any]:
        """Return all queues that its worker processes work on, parts each for itself."""

    def wake_children(self, queues: set[str]) -> None:
        """Have the worker processes ask these queues for jobs."""

    def start_helper(self, work: Callable[[], None]) -> None:
        """Run a function in a process of its own, unless one is at work."""


class Process(NamedTuple):
    """A process that runs jobs: a worker process, one of Celery, or that of a test.

    ``sources`` are its queues, ``worker`` is its id. ``report`` sends words to its supervisor, if it has one.
    """

    kind: Literal["worker", "celery", "test"]
    worker: str
    sources: Sequence[Any]
    stopping: Event
    burst: bool = False
    report: Callable[..., object] = lambda *words: None


class ProcessPart:
    """What a feature has in a process that runs jobs. ``run`` is called in a thread of its own, if it is not None."""

    run: Callable[[], object] | None = None
    #: Called after each attempt that succeeded or failed: the number of its queue, its task, the seconds for which that
    #: ran, the job, and whether it failed.
    note: Callable[..., object] | None = None

    def __init__(self, process: Process) -> None:
        """Begin in a process; see Feature.process_parts."""

    def flush(self) -> None:
        """Send what was gathered: Celery may end its process after any job."""

    def close(self) -> None:
        """Do what is left as the process ends."""
        self.flush()


class Recorder(Protocol):
    """What records the result of one attempt. ``alias`` is that of its backend."""

    alias: str

    def begin(self, call: Any) -> None:
        """Note that the attempt begins. No round trip."""

    def resume(self, call: Any) -> None:
        """Take over an attempt that began in another process."""

    def result(self) -> Any:
        """Return the result as it is now."""

    def error(self, raised: BaseException) -> tuple[bytes, int]:
        """Return the stored form of an error, and for how many milliseconds it is stored."""

    def keeps(self, *, failed: bool) -> int:
        """Return for how many milliseconds the result is stored."""

    def failed(self, raised: BaseException) -> None:
        """Announce that the task has failed and will not be tried again."""


class Feature:
    """The base of features. Each part is optional, but the name."""

    name: ClassVar[str]

    #: Bits of the key `features` of a queue that uses this feature, each with the part of scripts that is made for it.
    #: They are stored. The scripts of such a queue have what the ``scripts/_hooks.lua`` of the feature says.
    bits: ClassVar[Mapping[int, str]] = {}
    #: Further parts of scripts, which calls ask for. Scripts of calls that ask for none have those of all features.
    parts: ClassVar[tuple[str, ...]] = ()
    #: Dotted paths of modules, classes and functions, each by a name that one feature has. ``unique_keys`` is the
    #: module with chosen(), put(), check() and key_of_call(), ``lanes`` that with lane_of(), check(), lane_of_call()
    #: and the scripts of limits, ``pausing`` that with the flows pause(), resume() and paused(), and ``transport`` that
    #: which stores calls in a database until they are sent. ``canceller`` returns the step that cancels a job,
    #: ``step_class`` makes those of Task.step(), and ``spread`` is the subclass of engine.spread.Spread. ``results`` is
    #: the module with the flows get() and wait() and with ResultEnqueuer, ``result_step`` returns the step that reads a
    #: result, whose reply begins with the status, ``store_endings`` the flow that stores results of jobs that ended
    #: without their worker, and ``recorders`` what recorders() returns. ``celery_sender`` sends a call to Celery.
    provides: ClassVar[Mapping[str, str]] = {}
    #: Options that this feature adds to ``@task``, with their defaults; see declare(). Middleware reads them as
    #: ``attempt.options``, which is None for a task that has none.
    task_options: ClassVar[Mapping[str, Any]] = {}
    #: Dotted paths of panels of the dashboard.
    panels: ClassVar[tuple[str, ...]] = ()
    #: Sinks that are named by a word, as dotted paths.
    sinks: ClassVar[Mapping[str, str]] = {}
    #: The field that this feature adds to messages, by their version.
    message_fields: ClassVar[Mapping[int, str]] = {}
    #: Middleware around attempts of jobs, as dotted paths. By ``route`` a job may leave this worker, ``begin`` is
    #: around all that happens once it stays, and ``task`` around the call of its task and its result,
    #: ``call`` around the call alone.
    route: ClassVar[tuple[str, ...]] = ()
    begin: ClassVar[tuple[str, ...]] = ()
    task: ClassVar[tuple[str, ...]] = ()
    call: ClassVar[tuple[str, ...]] = ()
    #: Dotted paths of the subclass of ProcessPart, by the kind of process that has it.
    process_parts: ClassVar[Mapping[str, str]] = {}
    #: A module with a view of ``rk_queues``: NAME, add_argument() and show().
    queue_view: ClassVar[str] = ""
    #: Dotted paths of subclasses of MetricSource.
    metrics: ClassVar[tuple[str, ...]] = ()

    def ready(self) -> None:
        """Connect signals; called once when Django has loaded. Must not talk to a server."""

    def register_admin(self, site: Any) -> None:
        """Register models with the admin."""

    def checks(self) -> Iterable[CheckMessage]:
        """Return messages for ``manage.py check``. Must not talk to a server."""
        return ()

    def declare(self, task: Any) -> Mapping[str, Any]:
        """Check a task with an option of this feature, and return what to change of its other options.

        Called for each copy of the task, too. Raises InvalidValue.
        """
        return {}

    def death_hook(self, source: Any, body: bytes) -> Callable[[str], object] | None:
        """Return what to call with the reason if a job dies, given its queue and its body or the beginning of that."""

    def process_duties(self, process: Process) -> Iterable[Duty]:
        """Return the duties of a worker process: those that may wait for a database, which a supervisor can't."""
        return ()

    def queue_figures(self) -> Iterable[Any]:
        """Return figures of the dashboard about all queues."""
        return ()

    def hours(self, queue: str, count: int) -> Any:
        """Return the flow that reads the numbers of a queue by hour, of this many hours."""

    def job_step(self, base: str, id: str) -> Any:
        """Return the step that reads what the page of a job shows, given the beginning of the queue's keys."""

    def job_sections(self, reply: Any) -> Iterable[Any]:
        """Return what the page of a job shows, given the reply to job_step()."""
        return ()

    def job_lines(self, body: bytes) -> Iterable[Any]:
        """Return what the page of a job shows below its id."""
        return ()

    def duties(self, supervisor: Supervision) -> Iterable[Duty]:
        """Return the duties of a supervisor."""
        return ()


@cache
def features() -> tuple[Feature, ...]:
    """Return the features, in the order of their list."""
    return tuple(import_string(path)() for path in import_module(FEATURES).FEATURES)


@cache
def script_parts() -> Mapping[int, str]:
    """Return the parts of scripts that features bring, by their bits."""
    return {bit: part for feature in features() for bit, part in feature.bits.items()}


def whole(parts: frozenset[str]) -> frozenset[str]:
    """Return these parts of scripts with all parts of their features."""
    of_features = (set(feature.bits.values()) for feature in features())
    return parts.union(*(own for own in of_features if not parts.isdisjoint(own)))


@cache
def all_parts() -> frozenset[str]:
    """Return all parts of scripts that features bring."""
    return frozenset(part for feature in features() for part in (*feature.bits.values(), *feature.parts))


@cache
def pause_parts() -> frozenset[str]:
    """Return the parts of scripts for pauses, which a put needs that wakes workers."""
    return frozenset(part for feature in features() if "pausing" in feature.provides for part in feature.bits.values())


@cache
def script_hooks(parts: frozenset[str]) -> tuple[str, ...]:
    """Return the packages of the features whose parts are among these: they fill the hooks of scripts."""
    used = [feature for feature in features() if not parts.isdisjoint((*feature.bits.values(), *feature.parts))]
    return tuple(type(feature).__module__.rpartition(".")[0] for feature in used)


@cache
def option_class() -> type[Any]:
    """Return the frozen class of the options that features add to ``@task``; its instances have a field for each."""
    defaults = {name: default for feature in features() for name, default in feature.task_options.items()}
    return make_dataclass("TaskOptions", [(name, Any, default) for name, default in defaults.items()], frozen=True)


def declared(task: Any) -> dict[str, Any]:
    """Let features check a task that has options of theirs, and return what to change of its other options."""
    changes: dict[str, Any] = {}
    for feature in features():
        if any(getattr(task.options, name) != default for name, default in feature.task_options.items()):
            changes |= feature.declare(task)
    return changes


@cache
def message_fields() -> dict[int, str]:
    """Return the fields that features add to messages, by version."""
    return {version: field for feature in features() for version, field in feature.message_fields.items()}


def process_parts(process: Process) -> dict[str, ProcessPart]:
    """Return the parts of features in a process, by the names of the features."""
    paths = {feature.name: feature.process_parts.get(process.kind) for feature in features()}
    return {name: import_string(path)(process) for name, path in paths.items() if path}


def queue_views() -> list[Any]:
    """Return the views of ``rk_queues`` that features bring."""
    return [import_module(feature.queue_view) for feature in features() if feature.queue_view]


@cache
def has(part: str) -> bool:
    """Return whether a feature provides a part; see Feature.provides."""
    return any(part in feature.provides for feature in features())


@cache
def provided(part: str) -> Any:
    """Return the module, class or function that a feature provides. Raises ConfigurationError if none does."""
    for feature in features():
        if part in feature.provides:
            return resolve_name(feature.provides[part])
    raise ConfigurationError(f"No feature of redis_kit.queues provides {part}.")


def lane_of(queue: str, group: Any = None) -> str:
    """Return the lane of a job; "" if it has neither a group nor limits of its queue. Raises InvalidValue."""
    if group is None and (options_of(queue) is DEFAULTS or not has("lanes")):
        return ""
    lane: str = provided("lanes").lane_of(queue, group)
    return lane


def recorders() -> "Callable[[Any, Any], Recorder | None] | None":
    """Return a function that returns the recorder of a job of a queue; None if no feature stores results."""
    return provided("recorders")() if has("recorders") else None


def death_hooks(source: Any, body: bytes) -> Sequence[Callable[[str], object]]:
    """Return what to call with the reason if a job dies; see Feature."""
    return [hook for feature in features() if (hook := feature.death_hook(source, body))]


def middleware(place: str) -> list[Any]:
    """Return the middleware of all features for a place: route, begin, task or call."""
    return [import_string(path) for feature in features() for path in getattr(feature, place)]


def named_sinks() -> dict[str, str]:
    """Return the dotted paths of the sinks that are named by a word."""
    return {name: path for feature in features() for name, path in feature.sinks.items()}
