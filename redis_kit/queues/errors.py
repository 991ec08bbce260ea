"""The exceptions of queues and tasks."""

from typing import Any

from redis_kit.core.errors import ConfigurationError, RedisKitError
from redis_kit.queues import framework, validation
from redis_kit.queues.validation import Delay


class InvalidTask(RedisKitError, framework.InvalidTask, TypeError):
    """A function can't be a task: no worker could find it by its name."""


class UnlistedQueue(ConfigurationError, InvalidTask):
    """The queue of a task is not among ``QUEUES`` in the setting ``TASKS``."""


class UnknownBackend(ConfigurationError, framework.InvalidTaskBackend):
    """The setting ``TASKS`` has no backend of this name, or the path of its class can't be imported."""


class InvalidArguments(RedisKitError, TypeError):
    """The arguments do not fit the task's signature; nothing was sent."""


class InvalidSchedule(RedisKitError, ValueError):
    """A schedule can't be what was asked for; the message says what is allowed. ``field`` names the argument."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidWorkflow(RedisKitError, ValueError):
    """Steps can't be a workflow: they wait for each other, for a step elsewhere, are none or too many."""


class InvalidMiddleware(RedisKitError, TypeError):
    """A middleware of ``MIDDLEWARE`` took the task's error or value for itself, or changed what it must leave alone."""


class UnknownWorkflow(RedisKitError, LookupError):
    """There is no workflow of this id: it never started, or it has expired."""


class TaskTimeout(BaseException):
    """A task ran for longer than its ``timeout``. Raised inside the task, which may clean up.

    No Exception, as asyncio's CancelledError is none: what a library or ``except Exception`` takes for a failure of its
    own would not end the task.
    """


CANCELLED_WHILE_RUNNING = "The job was cancelled while it ran."


class Cancelled(BaseException):
    """A job was cancelled, while it waited or ran: the error of its result. Raised inside a task, as TaskTimeout is."""


class Interrupted(BaseException):
    """The worker stops while a resumable task runs: another worker goes on with the job. Raised by its loop."""


class WorkerLost(RedisKitError):
    """The processes of a job died, too many or that of its last attempt: the error of its result."""


class UnknownTask(RedisKitError, LookupError):
    """No imported module defines a task of this name."""


class UnfitArguments(UnknownTask):
    """The function of a registered task does not accept these arguments."""


class Expired(RedisKitError):
    """A job waited for longer than its task's ``expires`` allows, so it did not run. Stored as its result's error."""


class NoResult(RedisKitError):
    """The result of a call was requested, but its task stores none."""


class Retry(RedisKitError):
    """Raise it in a task to try again after ``delay`` seconds or a timedelta, by default after the task's backoff.

    It ends the attempt like any other error: after the last attempt the job is dead. Raises InvalidValue.
    """

    def __init__(self, why: str = "", *, delay: Delay | None = None) -> None:
        super().__init__(why)
        if delay is not None:
            validation.milliseconds(delay)
        self.delay = delay


class GiveUp(RedisKitError):
    """Raise it in a task to end its retries: the job is dead at once."""


class Snooze(RedisKitError):
    """Raise it in a task to run it again after ``delay`` seconds or a timedelta. No attempt is counted.

    A task may snooze without end, unless its job has ``expires``. ``why`` is shown on the dashboard. Raises
    InvalidValue.
    """

    def __init__(self, delay: Delay, why: str = "") -> None:
        super().__init__(why)
        validation.milliseconds(delay, positive=True)
        self.delay = delay

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.delay, *self.args), self.__dict__


class LeaseLost(RedisKitError):
    """The claim on a job is over.

    Its worker was silent for too long, so that another one has the job or has done it; or the server lost it with its
    data.
    """


class NotTaken(RedisKitError):
    """Another system did not take a job that was to be handed over. Raised by a Sink; the job stays in its queue.

    ``unavailable`` is True if the system takes no job at all now, False if it refused this one.
    """

    def __init__(self, why: str = "", *, unavailable: bool = True) -> None:
        super().__init__(why)
        self.unavailable = unavailable


class NotSerializable(RedisKitError, TypeError):
    """A value can't be stored as JSON; the message says where it stands."""


class PayloadTooLarge(RedisKitError, ValueError):
    """A payload is over 256 KiB; nothing was sent."""


class CorruptMessage(RedisKitError, ValueError):
    """A stored message can't be read."""


class NewerMessage(CorruptMessage):
    """A message of a newer release, for workers of that release."""

    def __init__(self, version: int) -> None:
        super().__init__(f"a message of version {version}, from a newer release than this worker's")
        self.version = version
