"""The content of the dashboard's page about one job."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.logs import error_text
from redis_kit.core.logs.masking import HIDDEN, is_secret, without_secrets
from redis_kit.core.panels import MOST_ROWS, Content, Lines, Link, Listing, Meter, Table, Words
from redis_kit.queues.dashboard.actions import OF_STATES, JobTarget
from redis_kit.queues.engine import message
from redis_kit.queues.engine import payload as serializers
from redis_kit.queues.engine.done import DoneJob
from redis_kit.queues.engine.feature import features
from redis_kit.queues.engine.history import History
from redis_kit.queues.engine.job import JobInfo, cause
from redis_kit.queues.engine.message import tags_of, task_of
from redis_kit.queues.errors import CorruptMessage, UnknownTask
from redis_kit.queues.reports.lookup import AttemptError, JobDetails
from redis_kit.queues.tasks import registry
from redis_kit.queues.tasks.progress import Progress

FIRST = _("First jobs of %s")
WAITS = _("waits for the limit %s")
TITLES = {
    **{"ready": _("Ready"), "scheduled": _("Scheduled"), "running": _("Running"), "dead": _("Dead")},
    "done": _("Done"),
}
COLUMNS = {
    "ready": (_("Job"), _("Due"), _("Attempts"), _("Priority")),
    "scheduled": (_("Job"), _("Due"), _("Attempts"), _("Priority")),
    "running": (_("Job"), _("Due"), _("Begun"), _("Attempts"), _("Worker")),
    "dead": (_("Job"), _("Died"), _("Attempts"), _("Error")),
    "done": (_("Job"), _("Ended"), _("Run time"), _("Wait"), _("Attempts"), _("Worker")),
}
LONG = 200  # characters of a cell
LONGEST = 20_000  # characters of a traceback, whose end tells most
STATES = {"ready": _("ready"), "scheduled": _("scheduled"), "running": _("running"), "dead": _("dead")}
STATUSES = {"READY": _("waiting"), "RUNNING": _("running"), "SUCCESSFUL": _("successful"), "FAILED": _("failed")}
UNTIL = {"done": _("until the job is done"), "queued": _("until the job begins")}
LONGEST_TEXT = 200  # characters of a text in the arguments
MOST_CHARACTERS = 2000  # characters of all
ITEMS = 50  # of a list or an object


def content(wanted: tuple[str, str], details: JobDetails | None) -> Iterator[Content]:
    """Yield what is known of a job that was looked for, by its queue and id."""
    title = _("Job in %s") % wanted[0]
    if details is None:
        yield Table(title, (), [], empty=_("Job not found: it is done or never existed."))
        return
    yield _job(title, JobTarget(*wanted, details.job.state if details.job else ""), details)
    yield from _conditions(details)
    yield from _beside(details)
    yield from _snoozes(details)
    if details.history:
        yield _result(details, details.history)
    yield from _texts(details)
    if details.history and details.history.begun:
        yield _attempts(details, details.history)
    for feature in features():
        if feature.name in details.extras:
            yield from feature.job_sections(details.extras[feature.name])
    for failure in filter(None, (details.result.cancelled, *details.result.errors)):
        yield _traceback(failure)


def moment(seconds: float) -> datetime | str:
    """Return a time in seconds since 1970; "?" for a number that the kit never writes."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return "?"


def tags(queue: str, state: str, tags_of_job: Sequence[str]) -> Words | None:
    """Return the tags of a job. Each links to the jobs of the queue with this tag in a state."""
    links = [Link(f"#{tag}", "jobs", {"queue": queue, "state": state, "tag": tag}) for tag in tags_of_job]
    return Words(links) if links else None


def link(queue: str, id: str) -> Link:
    """Return the link to the page of a job."""
    return Link(id, "queues", {"queue": queue, "id": id})


def title(queue: str, state: str) -> Any:
    """Return the title of a table of jobs."""
    return _("%(state)s in %(queue)s") % {"state": TITLES[state], "queue": queue}


def row(queue: str, info: JobInfo | DoneJob) -> tuple[Any, ...]:
    """Return the row of a job, under the COLUMNS of its state."""
    if isinstance(info, DoneJob):
        named = Lines((link(queue, info.id), info.task, tags(queue, "done", info.tags)))
        took = None if info.run_time is None else timedelta(seconds=info.run_time)
        return named, moment(info.ended), took, timedelta(seconds=info.wait), info.attempts, info.worker
    labels = tags(queue, info.state, tags_of(info.body))
    waits = WAITS % info.reason if info.state == "ready" and info.reason else ""
    named = Lines((link(queue, info.id), task_of(info.body), labels, waits))
    if info.state == "dead":
        return named, moment(info.died or 0), info.attempts, error(cause(info).error, info.reason)
    if info.state == "running":
        begun = None if info.begun is None else moment(info.begun)
        return named, moment(info.due), begun, info.attempts, Link(info.worker or "?", "workers")
    return named, moment(info.due), info.attempts, info.priority


def error(name: str, text: str) -> Lines:
    """Return the name of an error, and below it its text, which begins with that name."""
    return Lines((name, without_secrets(text).removeprefix(name).removeprefix(": ")))


def _job(title: Any, target: JobTarget, details: JobDetails) -> Table:
    record, job = details.record, details.job
    body = record.body if record else b""
    first = Link(FIRST % target.queue, "queues", {"queue": target.queue})
    lines = [line for feature in features() for line in feature.job_lines(body)]
    labels = tags(target.queue, job.state if job else "done", tags_of(body))
    cells: list[tuple[Any, Any]] = [
        (_("Job"), Lines((target.id, task_of(body), first, *lines, labels))),
        (_("State"), Lines(_state(details))),
        (_("Priority"), record and record.priority),
        (_("Attempts"), record and _counted(record.attempts, details.history)),
        (_("Crashes"), record and _crashes(record.crashes, details)),
        (_("Arguments"), redacted_arguments(body)),
    ]
    names = OF_STATES.get(job.state, ()) if job else ()
    if not task_of(body):
        names = tuple(name for name in names if name != "cancel")  # nobody stops what no task runs
    return _of_one(title, cells, actions=names, values=[target.value])


def _of_one(title: Any, cells: Sequence[tuple[Any, Any]], **more: Any) -> Table:
    """Return the table of one row, given its cells with the names of their columns."""
    columns, row = zip(*cells, strict=True)
    return Table(title, columns, [row], **more)


def _counted(attempts: int, about: History | None) -> Any:
    """Return the number of attempts. A retry of a dead job counts from 0 again, and leaves the list of its attempts."""
    in_all = len(about.begun) if about else 0
    return Lines((attempts, _("%d begun in all") % in_all)) if in_all > attempts else attempts


def _crashes(number: int, details: JobDetails) -> Any:
    return Lines((number, _("alone in %d of them") % details.alone)) if number else number


def _beside(details: JobDetails) -> Iterator[Table]:
    """Yield the jobs that ran in the same process when that died: each of them may have ended it."""
    if details.beside:
        rows = [(link(queue, id), queue) for queue, id in details.beside]
        yield Table(_("Jobs beside it in a process that died"), (_("Job"), _("Queue")), rows)


def _conditions(details: JobDetails) -> Iterator[Table]:
    expires = _expires(details)
    if details.key or expires:
        in_use = UNTIL.get(details.until, details.until) or None
        cells = [(_("Unique key"), details.key or None), (_("In use"), in_use), (_("Must begin by"), expires)]
        yield _of_one(_("Conditions"), cells)


def _snoozes(details: JobDetails) -> Iterator[Table]:
    if snoozes := details.result.snoozes:
        row = (snoozes.times, snoozes.last, without_secrets(snoozes.why) or None)
        yield Table(_("Run later at its task's request"), (_("Times"), _("Last time"), _("Reason")), [row])


def _state(details: JobDetails) -> tuple[Any, ...]:
    job, result = details.job, details.result
    if job is None:
        status = _("cancelled") if result.cancelled else STATUSES.get(result.status, result.status)
        return status, result.ended, _("the job is gone, its result is stored")
    if job.state == "running":
        return STATES[job.state], Link(job.worker or "?", "workers"), _("being cancelled") if details.cancelling else ""
    why = without_secrets(job.reason) if job.state == "dead" else job.reason and WAITS % job.reason
    return STATES[job.state], moment(job.due if job.died is None else job.died), why


def _expires(details: JobDetails) -> Any:
    if details.record is None:
        return None
    try:
        expires = message.loads(details.record.body).expires
    except CorruptMessage:
        return None
    return moment(details.record.due + expires / 1000) if 0 < expires < 2**53 else None


def _result(details: JobDetails, about: History) -> Table:
    result, job = details.result, details.job
    status = STATES[job.state] if job else STATUSES.get(result.status, result.status)
    over = job is None and result.status == "SUCCESSFUL"
    cells = [
        (_("Status"), status),
        (_("Enqueued"), about.enqueued_at),
        (_("To run at"), about.run_after),
        (_("Ended"), _ended(details)),
        (_("Progress"), _progress(result.progress)),
        (_("Return value"), redacted_value(result.value) if over else None),
    ]
    return _of_one(_("Result"), cells)


def _ended(details: JobDetails) -> Any:
    if details.job is None:
        return details.result.ended
    return None if details.job.died is None else moment(details.job.died)


def _progress(progress: Progress | None) -> Any:
    if progress is None:
        return None
    how_far = progress.done if progress.total is None else Meter(progress.done, progress.total, wanted=True)
    return Lines((how_far, without_secrets(str(progress.note)), progress.at))


def _texts(details: JobDetails) -> Iterator[Listing]:
    """Yield in full what a cell can't hold."""
    arguments = redacted_arguments(details.record.body) if details.record else ""
    returned = redacted_value(details.result.value) if details.result.value and details.job is None else ""
    for title, text in ((_("Arguments"), arguments), (_("Return value"), returned)):
        if len(text) > LONG:
            yield Listing(title, text)


def _attempts(details: JobDetails, about: History) -> Table:
    errors = {failure.attempt: failure for failure in details.result.errors}
    numbered = list(enumerate(zip(about.begun, about.workers, strict=True), start=1))
    rows = []
    for number, (begun, worker) in reversed(numbered[-MOST_ROWS:]):
        failure = errors.get(number)
        rows.append((number, begun, worker, failure and _failed(failure)))
    return Table(_("Attempts, the latest first"), (_("Attempt"), _("Begun"), _("Worker"), _("Error")), rows)


def _failed(failure: AttemptError) -> Lines:
    summary = error_text.summary_of(failure.kind, failure.traceback)
    return error(failure.kind.removeprefix("builtins."), summary)


def _traceback(failure: AttemptError) -> Listing:
    title = _("Traceback of attempt %d") % failure.attempt if failure.attempt else _("Cancellation")
    return Listing(title, without_secrets(failure.traceback)[-LONGEST:])


def redacted_arguments(body: bytes) -> str:
    """Return what a job holds as text: of a task the arguments, of any other the payload."""
    try:
        value = serializers.loads(body)
    except CorruptMessage:
        return str(_("It can't be read."))
    try:
        call = message.loads(body)
    except CorruptMessage:
        return repr(_redacted(value))[:MOST_CHARACTERS]
    return ", ".join(_arguments(call))[:MOST_CHARACTERS]


def redacted_value(stored: bytes) -> str:
    """Return a return value, given as it is stored, as text."""
    try:
        return repr(_redacted(serializers.loads(stored)))[:MOST_CHARACTERS]
    except CorruptMessage:
        return str(_("It can't be read."))


def _arguments(call: message.Message) -> list[str]:
    try:
        names = [*registry.find(call.task).signature.bind_partial(*call.args).arguments]
    except (UnknownTask, TypeError):
        names = None
    arguments = [*map(repr, _positional(call.args, names))]
    return [*arguments, *(f"{name}={value!r}" for name, value in _redacted(call.kwargs).items())]


def _positional(args: list[Any], names: list[str] | None) -> list[Any]:
    # Without names any argument may be a secret.
    if names is None:
        return [arg if arg is None or isinstance(arg, (bool, int, float)) else HIDDEN for arg in args[:ITEMS]]
    last = names[-1:] * len(args)  # what is left over belongs to *args
    return [
        HIDDEN if is_secret(name) else _redacted(arg) for name, arg in zip(names + last, args[:ITEMS], strict=False)
    ]


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = list(value.items())[:ITEMS]
        return {name: HIDDEN if is_secret(name) else _redacted(item) for name, item in items}
    if isinstance(value, list):
        return [_redacted(item) for item in value[:ITEMS]]
    if isinstance(value, bytes):
        return HIDDEN
    if isinstance(value, str):
        return without_secrets(value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…")
    return value
