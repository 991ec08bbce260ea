"""The actions behind the dashboard's buttons: on a queue, a job, the dead jobs of one cause, or a supervisor."""

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from redis_kit.core.errors import InvalidValue

if TYPE_CHECKING:
    from redis_kit.queues.monitoring.stats import Command
    from redis_kit.queues.queue import Queue

JOB = re.compile(r"([^/]+)/([A-Za-z0-9_.-]{1,128})")
GROUP = re.compile(r"([^/]+)/([^/]*)/([^/]*)")
SUPERVISOR = re.compile(r"([^/]*)/([0-9]{1,10})/([A-Za-z0-9_.-]{1,128})")
TIME = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?([smhd]?)", re.ASCII)
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class JobTarget(NamedTuple):
    """One job of a queue, as the value of a button names it."""

    queue: str
    id: str

    @classmethod
    def parse(cls, value: str) -> "JobTarget":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := JOB.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: this is not a job."))
        return cls(unquote(match[1]), match[2])

    @property
    def value(self) -> str:
        """Return the value of a button."""
        return f"{quote(self.queue, safe='')}/{self.id}"

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        return f"{self.queue}, {self.id}"

    def retry(self) -> str:
        """Make a dead job ready as if it were new. Raises InvalidValue if it is not dead."""
        if not existing(self.queue).requeue([self.id]):
            raise InvalidValue(_("Nothing was retried: %(job)s is not dead.") % {"job": self.shown})
        return _("Retried: %(job)s.") % {"job": self.shown}

    def run_now(self) -> str:
        """Make a scheduled job ready now. Raises InvalidValue if it is not scheduled."""
        if not existing(self.queue).run_now(self.id):
            raise InvalidValue(_("Nothing was done: %(job)s is not scheduled.") % {"job": self.shown})
        return _("Ready: %(job)s.") % {"job": self.shown}

    def cancel(self) -> str:
        """Cancel a waiting job now, a running one by its worker. Raises InvalidValue for any other."""
        from redis_kit.queues.store import manage

        queue = existing(self.queue)
        answer = queue.run_flow(manage.cancel(queue, self.id))
        if not answer:
            raise InvalidValue(
                _("Nothing was cancelled: %(job)s is neither waiting nor running.") % {"job": self.shown}
            )
        if answer == manage.STOPPING:
            return _("Cancelling: the worker will stop %(job)s.") % {"job": self.shown}
        return _("Cancelled: %(job)s.") % {"job": self.shown}

    def delete(self) -> str:
        """Delete it. Raises InvalidValue if it is running or gone."""
        if not existing(self.queue).delete(self.id):
            raise InvalidValue(_("Nothing was deleted: %(job)s is running or gone.") % {"job": self.shown})
        return _("Deleted: %(job)s.") % {"job": self.shown}


class GroupTarget(NamedTuple):
    """The dead jobs of a queue with one task and one error."""

    queue: str
    task: str
    error: str

    @classmethod
    def parse(cls, value: str) -> "GroupTarget":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := GROUP.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: this is not a group of dead jobs."))
        return cls(*map(unquote, match.groups()))

    @property
    def value(self) -> str:
        """Return the value of a button."""
        return "/".join(quote(part, safe="", errors="replace") for part in self)

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        return ", ".join(part for part in self if part)

    def retry(self, limit: int | None = None) -> str:
        """Make its jobs ready, the oldest first. Raises InvalidValue if there are none."""
        moved = existing(self.queue).requeue(task=self.task, error=self.error, limit=limit)
        if not moved:
            raise InvalidValue(_("Nothing was retried: the group has no dead jobs any more."))
        return retried(moved, self.queue)


class SupervisorTarget(NamedTuple):
    """A process of ``rk_worker``, with the id that its workers report."""

    host: str
    pid: int
    id: str

    @classmethod
    def parse(cls, value: str) -> "SupervisorTarget":
        """Return the target in the value of a row's button. Raises InvalidValue for any other text."""
        if (match := SUPERVISOR.fullmatch(value)) is None:
            raise InvalidValue(_("Nothing was done: this is not a supervisor."))
        return cls(unquote(match[1]), int(match[2]), match[3])

    @property
    def value(self) -> str:
        """Return the value of a button."""
        return f"{quote(self.host, safe='', errors='replace')}/{self.pid}/{self.id}"

    @property
    def shown(self) -> str:
        """Return its name for confirmations and the log."""
        return _("%(host)s, process %(pid)d") % {"host": self.host, "pid": self.pid}

    def send(self, command: "Command") -> str:
        """Send it the command quiet, resume or stop. Raises InvalidValue if it is gone. Five round trips."""
        from redis_kit.queues.monitoring import stats

        # The log names the process that gets the command, so host and pid of the button are compared first.
        workers = [worker for worker in stats.list_workers() if worker.supervisor == self.id]
        is_running = any((worker.host, worker.supervisor_pid) == (self.host, self.pid) for worker in workers)
        if not is_running or not stats.control_worker(self.id, command):
            raise InvalidValue(_("No command was sent: %(process)s is gone.") % {"process": self.shown})
        if command == "quiet":
            return _("Quiet: %(process)s finishes its jobs and claims no more.") % {"process": self.shown}
        if command == "resume":
            return _("Resumed: %(process)s claims jobs again.") % {"process": self.shown}
        return _("Stopping: %(process)s finishes its jobs and exits.") % {"process": self.shown}


def pause(name: str, time: str) -> str:
    """Pause a queue for a time such as 15m; without one until it is resumed."""
    existing(name).pause(duration(time) if time else None)
    if time:
        shown = time if time[-1].isalpha() else f"{time} s"
        return _("Paused for %(time)s: %(queue)s.") % {"queue": name, "time": shown}
    return _("Paused until resumed: %(queue)s.") % {"queue": name}


def resume(name: str) -> str:
    """End the pause of a queue. Raises InvalidValue if it is not paused."""
    if not existing(name).resume():
        raise InvalidValue(_("Nothing was resumed: %(queue)s was not paused.") % {"queue": name})
    return _("Resumed: %(queue)s.") % {"queue": name}


def retried(count: int, queue: str) -> str:
    """Return the sentence about a number of jobs that are ready again."""
    return ngettext("Retried %(count)d job of %(queue)s.", "Retried %(count)d jobs of %(queue)s.", count) % {
        "count": count,
        "queue": queue,
    }


def existing(name: str) -> "Queue":
    """Return a queue that was used or that the settings name. Raises InvalidValue for others. One round trip."""
    from redis_kit.queues.monitoring.stats import queue_names
    from redis_kit.queues.queue import Queue

    if name not in queue_names():
        raise InvalidValue(_("There is no queue %(queue)s.") % {"queue": name})
    return Queue(name)


def duration(text: str) -> float:
    """Return the seconds of a text such as 90, 15m, 2h or 7d. Raises InvalidValue for any other."""
    match = TIME.fullmatch(text.strip().lower())
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not seconds:
        raise InvalidValue(_("Enter a duration in seconds, or with a unit, such as 15m, 2h or 7d."))
    return seconds
