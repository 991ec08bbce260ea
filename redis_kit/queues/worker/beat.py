"""Keeps the children's leases alive, and gives back what dead workers held elsewhere."""

import logging
from time import monotonic

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.core.flow import Flow
from redis_kit.core.steps import Batch
from redis_kit.queues import moves, signals
from redis_kit.queues.claiming import Beaten
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.worker import failpoints
from redis_kit.queues.worker.child import Child
from redis_kit.queues.worker.source import Source, beat

logger = logging.getLogger("redis_kit.worker")
AGAIN = 1.0  # seconds: the longest pause between two tries while the server is away


class Outage:
    """Whether the server is away: said once on the way down, and once when it is back."""

    def __init__(self) -> None:
        self.lasts = False

    def say(self, error: RedisUnavailable | None) -> None:
        """Take in how the last call went."""
        if error and not self.lasts:
            logger.error("Redis is away, the worker waits for it: %s", error)
        elif self.lasts and not error:
            logger.warning("Redis is back.")
        self.lasts = error is not None


class Beat:
    """Beats for all children and queues in one round trip, and earlier where another worker's lease is about to end.

    ``at`` is when the next beat is due, ``answered`` when one was last answered, both on the monotonic clock; ``waits``
    for how long the next job of each queue has waited, where ``reports`` asks for that, at one more round trip.
    """

    def __init__(self, outage: Outage, *, reports: bool = False) -> None:
        self._outage, self._reports = outage, reports
        self._noted = False
        self.at, self.answered = 0.0, monotonic()
        self.waits: dict[str, float] = {}

    def beat(self, children: list[Child]) -> list[str]:
        """Beat, pass on what concerns a child, and return the orders that somebody left."""
        wait = conf.section(QueueSettings).BEAT
        orders: list[str] = []
        failpoints.reach("before_beat")
        try:
            for child, source, answer in self._answers(children):
                self._take_in(child, source, answer)
                orders += [answer.order] if answer.order else []
                if answer.next_lease is not None:
                    wait = min(wait, answer.next_lease + 0.001)
            self._look_around(children)
        except RedisUnavailable as error:
            self._outage.say(error)
            wait = min(wait, AGAIN)
        except Exception:
            logger.exception("A beat failed; the next one follows.")
        self.at = monotonic() + wait
        return orders

    def _answers(self, children: list[Child]) -> list[tuple[Child, Source, Beaten]]:
        pairs = [(child, source) for child in children for source in child.sources]
        if not pairs:
            return []
        try:
            answers = beat([source for _, source in pairs])
            found = [(child, source, answer) for (child, source), answer in zip(pairs, answers, strict=True)]
        except RedisUnavailable:
            raise
        except RedisFailure:
            found = _one_by_one(pairs)
        self._outage.say(None)
        self.answered = monotonic()
        return found

    def _look_around(self, children: list[Child]) -> None:
        if not children:
            return
        sources = children[0].sources
        if not self._noted:
            for source in sources:
                source.note()
            self._noted = True
        if self._reports:
            replies = sources[0]._run(_reported(sources))
            pairs = zip(sources, replies, strict=True)
            self.waits = {source.name: reply[4] / 1000 for source, reply in pairs if reply[4] >= 0 > reply[6]}

    def _take_in(self, child: Child, source: Source, answer: Beaten) -> None:
        index = child.sources.index(source)
        if answer.next_job is not None and answer.next_job <= 3 * conf.section(QueueSettings).BEAT:
            child.line.say(f"look {index} {answer.next_job:.3f}")
        known, child.cancelled[index] = child.cancelled.get(index, set()), set(answer.cancelled)
        for id in child.cancelled[index] - known:
            child.line.say(f"cancel {index} {id}")
        if answer.given_back:
            logger.warning("Queue %a: %d jobs of dead workers are ready again.", source.name, answer.given_back)
        for id in answer.dead:
            buried(source.name, id)


def buried(queue: str, id: str) -> None:
    """Tell that a job is dead since too many workers died with it."""
    logger.error("Queue %a: job %a is dead; too many workers died with it.", queue, id)
    signals.job_dead.send_robust(Beat, queue=queue, id=id, reason="poison")


def _one_by_one(pairs: list[tuple[Child, Source]]) -> list[tuple[Child, Source, Beaten]]:
    found = []
    for child, source in pairs:
        try:
            found += [(child, source, answer) for answer in beat([source])]
        except RedisUnavailable:
            raise
        except RedisFailure as error:
            logger.debug("Queue %a got no beat: %s", source.name, error)
    return found


def _reported(sources: list[Source]) -> Flow[list[list[int]]]:
    replies: list[list[int]] = yield Batch([moves.REPORT(source.key(""), 1) for source in sources])
    return replies
