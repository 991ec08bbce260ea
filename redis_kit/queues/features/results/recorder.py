"""Records the results of jobs: their stored form, and the signals of the task framework."""

import contextlib
import logging
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from django.utils import timezone

from redis_kit.core.errors import ConfigurationError, RedisFailure
from redis_kit.core.logs.error_text import cut_frames, path_of, traceback_of
from redis_kit.core.signals import send_safely
from redis_kit.queues import framework
from redis_kit.queues.engine import history, payload
from redis_kit.queues.engine.job import Job
from redis_kit.queues.engine.message import Message
from redis_kit.queues.errors import CorruptMessage
from redis_kit.queues.features.results import calls
from redis_kit.queues.tasks.registry import backend_of
from redis_kit.queues.tasks.result import dump_value
from redis_kit.queues.worker.run.attempt import Attempt, Middleware
from redis_kit.queues.worker.shared.worker_queue import WorkerQueue

_NOTHING = object()


def recorders() -> "Callable[[WorkerQueue, Job], ResultRecorder | None]":
    """See Results.recorders()."""
    backends: dict[str, Any] = {}

    def recorder_of(source: WorkerQueue, job: Job) -> ResultRecorder | None:
        alias = history.backend(job.history) if job.history else None
        if alias is None:
            return None
        if alias not in backends:
            backends[alias] = _backend(alias)
        return ResultRecorder(source, job, backends[alias], alias)

    return recorder_of


class ResultRecorder:
    """The result of one attempt, from beginning to end. It is built only when something asks for it."""

    _call: Message | None = None
    _made: Any = None
    _returned: Any = _NOTHING

    def __init__(self, source: WorkerQueue, job: Job, backend: Any, alias: str) -> None:
        self.alias, self._backend = alias, backend
        self._source, self._job = source, job

    def begin(self, call: Message) -> None:
        """Note that the attempt begins. No round trip; see result()."""
        self.resume(call)
        if framework.heard(framework.task_started, logging.INFO):
            self._tell(framework.task_started)

    def resume(self, call: Message) -> None:
        """Take over an attempt that began in another process, whose start was announced there."""
        self._call = call

    def result(self) -> Any:
        """Return the result; None before begin() or resume().

        One round trip if there were attempts before, for their errors.
        """
        if self._made is None and self._call is not None and (about := history.read(self._job.history)):
            self._made = calls.started(self._source.name, self._job, self._call, about)
            if self._made.attempts > 1:
                with contextlib.suppress(RedisFailure, CorruptMessage, framework.TaskResultDoesNotExist):
                    self._made.errors.extend(self._source.run_flow(calls.get(self._source, self._job.id)).errors)
        return self._made

    def context(self) -> Any:
        """Return the context for a task that takes one."""
        return framework.TaskContext(task_result=self.result())

    def value(self, returned: Any) -> bytes:
        """Return the stored form of what the task returned. Raises NotSerializable and PayloadTooLarge."""
        self._returned, stored = dump_value(returned)
        return bytes(stored)

    def error(self, raised: BaseException) -> tuple[bytes, int]:
        """Return the stored form of an error, and for how many milliseconds it is stored."""
        path, traceback = path_of(type(raised)), traceback_of(raised)
        if result := self.result():
            result.errors.append(framework.TaskError(exception_class_path=path, traceback=traceback))
        return payload.encoded_traceback(path, traceback), self.keeps(failed=True)

    def keeps(self, *, failed: bool) -> int:
        """Return for how many milliseconds the result is stored."""
        return int(self._backend.result_ttl_ms(failed=failed))

    def succeeded(self) -> None:
        """Announce that the task has succeeded."""
        self._end(framework.TaskResultStatus.SUCCESSFUL)

    def failed(self, raised: BaseException) -> None:
        """Announce that the task has failed and will not be tried again."""
        try:
            raise raised  # receivers look for the exception that is being handled
        except BaseException:
            with framework.unlogged(framework.task_finished):  # the worker has logged the error already
                self._end(framework.TaskResultStatus.FAILED)
        finally:
            cut_frames(raised, __file__)  # this frame refers to the error: a circle

    def _end(self, status: Any) -> None:
        if result := self.result():
            if self._returned is not _NOTHING:
                object.__setattr__(result, "_return_value", self._returned)
            calls.finish(result, status, timezone.now())
            self._tell(framework.task_finished)

    def _tell(self, signal: Any) -> None:
        if result := self.result():
            send_safely(signal, type(self._backend), task_result=result)


def _backend(alias: str) -> Any:
    # A worker may have other settings than the process that enqueued the job.
    from redis_kit.queues.backend import RedisTaskBackend as kind

    with contextlib.suppress(framework.InvalidTaskBackend, ConfigurationError):
        if isinstance(named := backend_of(alias), kind) and named.chosen:
            return named
    return kind(alias, {})


class Results(Middleware):
    """Stores what the task returns."""

    is_used = attrgetter("recorder")

    def __call__(self, attempt: Attempt) -> Any:
        """See Middleware."""
        recorder: Any = attempt.recorder
        if attempt.task.takes_context:
            attempt.context = recorder.context()
        returned = self.call_next(attempt)
        attempt.value = recorder.value(returned)
        if framework.heard(framework.task_finished, logging.INFO):
            attempt.announcements += (recorder.succeeded,)
        return returned
