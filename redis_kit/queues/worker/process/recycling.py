"""When a worker process asks to be replaced."""

from redis_kit.queues.worker.options import Options
from redis_kit.queues.worker.shared.channel import Channel
from redis_kit.queues.worker.shared.memory import resident
from redis_kit.queues.worker.shared.status_board import StatusBoard


class RecyclingLimits:
    """Asks the supervisor for a replacement, once, when the process has run enough jobs or has grown too large."""

    def __init__(self, options: Options, board: StatusBoard, channel: Channel) -> None:
        self._options, self._board, self.channel = options, board, channel
        self.reached = False

    def check(self) -> bool:
        """Check the limits after a job. True if the process must claim no more."""
        if not self.reached:
            most, size = self._options.max_tasks, self._options.max_rss
            if (most and self._board.done >= most) or (size and resident() > size):
                self.reached = True
                self.channel.say("recycle")
        return self.reached
