"""The actions behind the dashboard's buttons: on a queue, a job, the dead jobs of one cause, or a supervisor."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, cast
from urllib.parse import parse_qs, quote, unquote, urlencode

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.panels import Effect, duration
from redis_kit.core.primitive import Primitive
from redis_kit.core.scripts import ScriptCall
from redis_kit.core.steps import Batch
from redis_kit.core.text import first_of, grouped
from redis_kit.queues import limits
from redis_kit.queues.engine.enqueue import MOST_NAMES
from redis_kit.queues.engine.feature import provided
from redis_kit.queues.engine.job import JobInfo, State
from redis_kit.queues.engine.message import task_of
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.management import manage
from redis_kit.queues.management.manage import JobFilter
from redis_kit.queues.queue import Queue
from redis_kit.queues.reports.job_pages import LOOKED_THROUGH, TextFilter, first_jobs
from redis_kit.queues.reports.stats import queue_names
from redis_kit.queues.reports.workers import Command, WorkerInfo, control_worker, list_workers

ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
JOB = re.compile(rf"([^/]+)/({ID.pattern})(?:/([a-z]*))?")
MOST_RETRIED = 1000  # dead jobs of a queue
NAMED = 5  # jobs or tasks in a sentence
Step = Callable[[str, str], ScriptCall]  # of the beginning of a queue's keys, and an id
MOST = 1000  # jobs that one button changes
TEXTS = ("task", "error", "tag")  # of a filter
MATCHING = "?"  # begins the value of a button for all that match
OF_STATES = {
    "ready": ("cancel", "delete"),
    "scheduled": ("run_now", "cancel", "delete"),
    "running": ("cancel",),
    "dead": ("retry", "delete"),
}
EFFECTS = {
    "retry": ngettext_lazy(
        "%(jobs)s dead job becomes ready as if it were new.",
        "%(jobs)s dead jobs become ready as if they were new.",
        "count",
    ),
    "run_now": ngettext_lazy(
        "%(jobs)s job becomes ready before its time.", "%(jobs)s jobs become ready before their time.", "count"
    ),
    "cancel": ngettext_lazy(
        "%(jobs)s job will not run, or is stopped by its worker. Its result will say that it was cancelled.",
        "%(jobs)s jobs will not run, or are stopped by their workers. Their results will say that they were cancelled.",
        "count",
    ),
    "delete": ngettext_lazy(
        "%(jobs)s job is deleted, and can't be retried. Callers that wait for its result get none.",
        "%(jobs)s jobs are deleted, and can't be retried. Callers that wait for their results get none.",
        "count",
    ),
}
DONE = {
    "retry": ngettext_lazy("Retried %(count)s job of %(queue)s.", "Retried %(count)s jobs of %(queue)s.", "number"),
    "run_now": ngettext_lazy("Ready: %(count)s job of %(queue)s.", "Ready: %(count)s jobs of %(queue)s.", "number"),
    "cancel": ngettext_lazy(
        "Cancelled %(count)s job of %(queue)s.", "Cancelled %(count)s jobs of %(queue)s.", "number"
    ),
    "delete": ngettext_lazy("Deleted %(count)s job of %(queue)s.", "Deleted %(count)s jobs of %(queue)s.", "number"),
}

SENT = {
    "quiet": gettext_lazy("Quiet: %(process)s finishes its jobs and claims no more."),
    "resume": gettext_lazy("Resumed: %(process)s claims jobs again."),
    "stop": gettext_lazy("Stopping: %(process)s finishes its jobs and exits."),
}


class Target:
    """What a button changes, as its value names it: the parts of the value, quoted and joined with slashes.

    The parts are the fields of a frozen dataclass.
    """

    pattern: ClassVar[re.Pattern[str]]
    refusal: ClassVar[Any]  # what is said of any other text

    @classmethod
    def parse(cls, value: str) -> Self:
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := cls.pattern.fullmatch(value)) is None:
            raise InvalidValue(str(cls.refusal))
        return cls(*map(unquote, match.groups("")))

    @property
    def value(self) -> str:
        """Return the value of a button."""
        return "/".join(quote(part, safe="", errors="replace") for part in self._parts)

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        return ", ".join(filter(None, self._parts))

    @property
    def _parts(self) -> list[str]:
        return [str(getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class JobTarget(Target):
    """One job of a queue, as the value of a button names it, with the state in which a page showed it, "" for any."""

    pattern = JOB
    refusal = gettext_lazy("Nothing was done: this is not a job.")

    queue: str
    id: str
    state: str = ""


class JobSelection(NamedTuple):
    """Jobs of a queue, by their ids, or if there are none all in a state that match the filter.

    Jobs with ids are deleted only in the state, "" for any.
    """

    queue: str
    ids: tuple[str, ...]
    state: str = ""
    task: str = ""
    error: str = ""
    tag: str = ""

    @classmethod
    def parse(cls, value: str) -> Self:
        """Return the selection in the value of a button. Raises InvalidValue for any other text."""
        if value.startswith(MATCHING):
            fields = {name: values[-1] for name, values in parse_qs(value[1:]).items()}
            queue, state, ids = fields.get("queue", ""), fields.get("state", ""), fields.get("ids", "").split()
            if not queue or state not in OF_STATES or len(ids) > MOST or not all(map(ID.fullmatch, ids)):
                raise InvalidValue(_("Nothing was done: this is not a search for jobs."))
            return cls(queue, tuple(ids), state, *(fields.get(name, "") for name in TEXTS))
        targets = [JobTarget.parse(line) for line in value.split("\n")]
        if len(targets) > MOST or len({(target.queue, target.state) for target in targets}) != 1:
            text = _("Nothing was done: select up to %s jobs of one queue in one state.")
            raise InvalidValue(text % grouped(MOST))
        return cls(targets[0].queue, tuple(dict.fromkeys(target.id for target in targets)), targets[0].state)

    @property
    def value(self) -> str:
        """Return the value of the button for all that match, or of its confirmation, which has their ids."""
        fields = {**self._asdict(), "ids": " ".join(self.ids)}
        return MATCHING + urlencode({name: text for name, text in fields.items() if text})

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        if self.ids and (len(self.ids) == 1 or not any(self[3:])):
            return f"{self.queue}, {first_of(self.ids, NAMED)}"
        return ", ".join([self.queue, self.state, *(repr(text) for text in self[3:] if text)])

    def effect(self, action: str) -> str | Effect:
        """Return what an action will do: the number of jobs, and their tasks unless the viewer selected several.

        The Effect of a search has the ids of the jobs. Raises InvalidValue without a job. Two round trips or more for
        one job and for a search.
        """
        if len(self.ids) > 1:
            return _effect(action, len(self.ids))
        any_state = action == "cancel" or not self.state
        jobs = [
            info
            for info in self._read(existing(self.queue))
            if action in OF_STATES[info.state] and (any_state or info.state == self.state)
        ]
        if not jobs:
            raise _none_in_state()
        text = _effect(action, len(jobs), Counter(task_of(info.body) for info in jobs))
        return text if self.ids else Effect(text, self._replace(ids=tuple(info.id for info in jobs)).value)

    def change(self, action: str) -> str:
        """Carry out an action, and return how many jobs it changed. Raises InvalidValue if there are none.

        Jobs are deleted only in the state of the selection, and running ones are cancelled by their workers.
        """
        steps: dict[str, Step] = {
            "retry": partial(manage.requeue_step, state="dead"),
            "run_now": partial(manage.requeue_step, state="scheduled"),
            "cancel": provided("canceller"),
            "delete": partial(manage.delete_step, state=self.state),
        }
        queue = existing(self.queue)
        ids = self.ids or [info.id for info in self._read(queue)]
        answers = queue.run_flow(_each(queue, ids, steps[action]))
        changed, stopping = len(list(filter(None, answers))), answers.count(manage.STOPPING)
        if not changed:
            raise _none_in_state()
        sentences = [_done(action, changed, self.queue)]
        if stopping:
            text = ngettext(
                "%(count)s is running; its worker stops it.",
                "%(count)s are running; their workers stop them.",
                stopping,
            )
            sentences.append(text % {"count": grouped(stopping)})
        if others := len(ids) - changed:
            text = ngettext(
                "%(others)s job is in another state, or gone.", "%(others)s jobs are in another state, or gone.", others
            )
            sentences.append(text % {"others": grouped(others)})
        return " ".join(sentences)

    def _read(self, queue: Queue) -> list[JobInfo]:
        if self.ids:
            return list(filter(None, map(queue.get, self.ids)))
        jobs: list[JobInfo] = queue.run_flow(first_jobs(queue, cast("State", self.state), MOST, TextFilter(*self[3:])))
        return [info for info in jobs if ID.fullmatch(info.id)]


def _effect(action: str, count: int, tasks: Mapping[str, int] = MappingProxyType({})) -> str:
    text = str(EFFECTS[action] % {"count": count, "jobs": grouped(count)})
    if not tasks:
        return text
    named = [f"{task or _('no task')} ({jobs})" for task, jobs in Counter(tasks).most_common(NAMED + 1)]
    return f"{text} {_('Tasks: %(tasks)s.') % {'tasks': first_of(named, NAMED)}}"


def _done(action: str, count: int, queue: str) -> str:
    return str(DONE[action] % {"number": count, "count": grouped(count), "queue": queue})


def _none_in_state() -> InvalidValue:
    return InvalidValue(_("Nothing was done: no job is in this state any more."))


def _each(queue: Primitive, ids: Sequence[str], step: Step) -> Flow[list[int]]:
    by_shard = yield from spread().each(queue, partial(_of_one, ids=ids, step=step))
    return [answer for answers in by_shard for answer in answers]


def _of_one(queue: Primitive, *, ids: Sequence[str], step: Step) -> Flow[list[int]]:
    answers: list[int] = []
    for at in range(0, len(ids), manage.CHUNK):
        steps = [step(queue.key(""), id) for id in ids[at : at + manage.CHUNK]]
        answers += yield Batch(steps)
    return answers


@dataclass(frozen=True)
class GroupTarget(Target):
    """The dead jobs of a queue with one task and one error."""

    pattern = re.compile(r"([^/]+)/([^/]*)/([^/]*)")
    refusal = gettext_lazy("Nothing was done: this is not a group of dead jobs.")

    queue: str
    task: str
    error: str

    def effect(self, action: str) -> str:
        """Return what retry() will do. Two round trips; one more for each further 1000 jobs. Raises InvalidValue."""
        queue, wanted = existing(self.queue), JobFilter(self.task, self.error)
        count = len(queue.run_flow(first_jobs(queue, "dead", LOOKED_THROUGH, wanted)))
        if not count:
            raise self._no_jobs()
        return _effect("retry", count, Counter({self.task: count}))

    def _no_jobs(self) -> InvalidValue:
        return InvalidValue(_("Nothing was retried: the group has no dead jobs any more."))

    def retry(self, limit: int | None = None) -> str:
        """Make its jobs ready, the oldest first. Raises InvalidValue if there are none."""
        moved = existing(self.queue).requeue(task=self.task, error=self.error, limit=limit)
        if not moved:
            raise self._no_jobs()
        return _done("retry", moved, self.queue)


@dataclass(frozen=True, order=True)
class SupervisorTarget(Target):
    """A process of ``rk_worker``, with the id that its workers report."""

    pattern = re.compile(r"([^/]*)/([0-9]{1,10})/([A-Za-z0-9_.-]{1,128})")
    refusal = gettext_lazy("Nothing was done: this is not a supervisor.")

    host: str
    pid: int
    id: str

    @classmethod
    def parse(cls, value: str) -> Self:
        """See Target.parse()."""
        target = super().parse(value)
        return replace(target, pid=int(target.pid))

    @property
    def shown(self) -> str:
        """See Target.shown."""
        return process_name(self.host, self.pid)

    def effect(self, action: str) -> str:
        """Return what the command stop will do. Two round trips. Raises InvalidValue if it is gone."""
        workers = self._workers()
        if not workers:
            raise self._gone()
        jobs = [job.task or job.id for worker in workers for job in worker.held]
        processes = ngettext("%(count)s worker process exits.", "%(count)s worker processes exit.", len(workers))
        sentences = [processes % {"count": grouped(len(workers))}]
        if jobs:
            finished = ngettext(
                "%(count)s running job is finished first: %(jobs)s.",
                "%(count)s running jobs are finished first: %(jobs)s.",
                len(jobs),
            )
            sentences.append(finished % {"count": grouped(len(jobs)), "jobs": first_of(jobs, NAMED)})
        sentences.append(_("A process manager such as systemd may start a new one."))
        return " ".join(sentences)

    def _workers(self) -> list[WorkerInfo]:
        return [worker for worker in list_workers() if worker.supervisor == self.id]

    def _gone(self) -> InvalidValue:
        return InvalidValue(_("No command was sent: %(process)s is gone.") % {"process": self.shown})

    def send(self, command: Command) -> str:
        """Send it the command quiet, resume or stop. Raises InvalidValue if it is gone. Five round trips."""
        # The log names the process that gets the command, so host and pid of the button are compared first.
        is_running = any((worker.host, worker.supervisor_pid) == (self.host, self.pid) for worker in self._workers())
        if not is_running or not control_worker(self.id, command):
            raise self._gone()
        return str(SENT[command] % {"process": self.shown})


@dataclass(frozen=True)
class LimitTarget(Target):
    """One limit of a queue, as the value of a button names it."""

    pattern = re.compile(r"([^/]+)/(\S{1,1800})")
    refusal = gettext_lazy("Nothing was done: this is not a limit.")

    queue: str
    limit: str

    def change(self, text: str) -> str:
        """Set what the limit allows. Raises InvalidValue."""
        numbers = [part for part in re.split(r"[\s,]+", text.strip()) if part]
        counts = [part for part in numbers if part.isdecimal()]
        rates = [part for part in numbers if not part.isdecimal()]
        if len(counts) > 1 or len(rates) > 1:
            raise InvalidValue(_("Nothing was changed: give one number of jobs, one rate, or both."))
        concurrency, rate = int(counts[0]) if counts else None, rates[0] if rates else None
        limits.set_limit(existing(self.queue).name, self.limit, concurrency=concurrency, rate=rate)
        return _("Changed: %(limit)s.") % {"limit": self.shown}

    def reset(self) -> str:
        """Let the limit allow again what the code says. Raises InvalidValue if it does."""
        if not limits.reset_limit(existing(self.queue).name, self.limit):
            raise InvalidValue(_("Nothing was reset: %(limit)s allows what the code says.") % {"limit": self.shown})
        return _("Reset: %(limit)s.") % {"limit": self.shown}


def process_name(host: str, pid: int) -> str:
    """Return the name of a process for people."""
    return _("%(host)s, process %(pid)d") % {"host": host, "pid": pid}


class QueueTarget(NamedTuple):
    """A queue. Its name is the value of a button."""

    shown: str

    def effect(self, action: str) -> str:
        """Return what pause() or retry_dead() will do. Two or three round trips. Raises InvalidValue."""
        counts = existing(self.shown).counts()
        if action == "pause":
            numbers = {state: grouped(count) for state, count in counts._asdict().items()}
            now = _("Now: %(running)s running, %(ready)s ready, %(scheduled)s scheduled.") % numbers
            return _("Workers finish the running jobs and claim no more. New jobs are accepted and wait.") + " " + now
        count = min(counts.dead, MOST_RETRIED)
        if not count:
            raise InvalidValue(_("Nothing was retried: %(queue)s has no dead jobs.") % {"queue": self.shown})
        queue = Queue(self.shown)
        jobs: list[JobInfo] = queue.run_flow(first_jobs(queue, "dead", LOOKED_THROUGH))
        effect = _effect("retry", count, Counter(task_of(info.body) for info in jobs))
        more = _("The queue has %(dead)s dead jobs: repeat this for the others.") % {"dead": grouped(counts.dead)}
        return f"{effect} {more}" if counts.dead > count else effect

    def pause(self, time: str) -> str:
        """Pause it for a time such as 15m; without one until it is resumed."""
        existing(self.shown).pause(duration(time) if time else None)
        if time:
            period = time if time[-1].isalpha() else f"{time} s"
            return _("Paused for %(time)s: %(queue)s.") % {"queue": self.shown, "time": period}
        return _("Paused until resumed: %(queue)s.") % {"queue": self.shown}

    def resume(self) -> str:
        """End its pause. Raises InvalidValue if it is not paused."""
        if not existing(self.shown).resume():
            raise InvalidValue(_("Nothing was resumed: %(queue)s was not paused.") % {"queue": self.shown})
        return _("Resumed: %(queue)s.") % {"queue": self.shown}

    def retry_dead(self) -> str:
        """Make up to 1000 dead jobs ready again."""
        return _done("retry", existing(self.shown).requeue(limit=MOST_RETRIED), self.shown)


def existing(name: str) -> Queue:
    """Return a queue that was used or that the settings name. Raises InvalidValue for others. One round trip."""
    names = queue_names()
    if name not in names:
        raise InvalidValue(unknown_queue(name, names))
    return Queue(name)


def unknown_queue(name: str, names: Sequence[str]) -> str:
    """Return that there is no queue of this name, as far as names are listed."""
    full = _("It may exist: no further names of queues are listed.") if len(names) >= MOST_NAMES else ""
    return f"{_('There is no queue %(queue)s.') % {'queue': name}} {full}".strip()
