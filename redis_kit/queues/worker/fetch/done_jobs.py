"""Jobs that are done and not yet acknowledged."""

from collections.abc import Callable
from threading import Lock

from redis_kit.queues.jobs.job import Job
from redis_kit.queues.worker.shared import failpoints
from redis_kit.queues.worker.shared.done import Done
from redis_kit.queues.worker.shared.status_board import StatusBoard


class DoneJobs:
    """A job that is done is on the status board until the server knows: a supervisor finds it there after a SIGKILL.

    Calls that failed and are to be made again lie here too. The lock keeps the lists and the board in step.
    """

    def __init__(self, queues: int, board: StatusBoard) -> None:
        self._board, self._lock = board, Lock()
        self.done: list[list[Done]] = [[] for _ in range(queues)]  # by the number of the queue
        self.calls: list[Callable[[], None]] = []

    def add(self, done: Done) -> bool:
        """Add a job that is done. False if the board is full: then the server must be told first."""
        with self._lock:
            self.done[done.ended.source].append(done)
            noted = self._board.note(done.ended.pack())
            failpoints.reach("noted")
        return noted

    def add_call(self, call: Callable[[], None]) -> None:
        """Add a call that is to be made after the next exchange."""
        with self._lock:
            self.calls.append(call)

    def put_back(self, number: int, done: list[Done]) -> None:
        """Add what the server did not record, before what came since."""
        with self._lock:
            self.done[number][:0] = done

    def take(self) -> tuple[list[list[Done]], list[Callable[[], None]]]:
        """Return what is to be sent and called now. It stays on the board until confirm()."""
        with self._lock:
            done, self.done = self.done, [[] for _ in self.done]
            calls, self.calls = self.calls, []
            self._board.turn()
        return done, calls

    def confirm(self) -> None:
        """Remove from the board what was last taken: the server has recorded it."""
        self._board.forget()

    def jobs(self) -> list[Job]:
        """Return the jobs that are done and not sent."""
        with self._lock:
            return [item.job for done in self.done for item in done]
