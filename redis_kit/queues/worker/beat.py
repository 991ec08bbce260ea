"""Keeps the worker alive, and gives back what dead ones held."""

import logging
from threading import Event

from redis_kit.core import conf
from redis_kit.core.errors import RedisFailure, RedisUnavailable
from redis_kit.queues import signals
from redis_kit.queues.claiming import Beaten
from redis_kit.queues.component import QueueSettings
from redis_kit.queues.worker import failpoints
from redis_kit.queues.worker.alarm import Alarm
from redis_kit.queues.worker.source import Source, beat

logger = logging.getLogger("redis_kit.worker")


class Beat:
    """Beats for all queues in one round trip, and earlier where another worker's lease is about to end."""

    def __init__(self, sources: list[Source], *, alarm: Alarm) -> None:
        self._sources, self._alarm = sources, alarm
        self._stop = Event()
        self._away = False
        self._noted = False

    def run(self) -> None:
        """Beat until stopped, whatever happens."""
        wait = 0.0
        while not self._stop.wait(wait):
            wait = conf.section(QueueSettings).BEAT
            try:
                wait = min([wait, *self._beat()])
            except RedisUnavailable as error:
                self._say(error)
                wait = min(wait, 1.0)
            except Exception:
                logger.exception("A beat failed; the next one follows.")

    def stop(self) -> None:
        """Stop beating."""
        self._stop.set()

    def _beat(self) -> list[float]:
        failpoints.reach("before_beat")
        answers = self._answers()
        self._say(None)
        if not self._noted:
            for source in self._sources:
                source.note()
            self._noted = True
        return [wait for source, answer in answers for wait in self._take_in(source, answer)]

    def _answers(self) -> list[tuple[Source, Beaten]]:
        try:
            return list(zip(self._sources, beat(self._sources), strict=True))
        except RedisUnavailable:
            raise
        except RedisFailure:
            return self._one_by_one()

    def _one_by_one(self) -> list[tuple[Source, Beaten]]:
        found = []
        for source in self._sources:
            try:
                found += [(source, answer) for answer in beat([source])]
            except RedisUnavailable:
                raise
            except RedisFailure as error:
                logger.debug("Queue %a got no beat: %s", source.name, error)
        return found

    def _take_in(self, source: Source, answer: Beaten) -> list[float]:
        if answer.next_job is not None:
            self._alarm.set(answer.next_job)
        if answer.given_back:
            logger.warning("Queue %a: %d jobs of dead workers are ready again.", source.name, answer.given_back)
        for id in answer.dead:
            logger.error("Queue %a: job %a is dead; too many workers died with it.", source.name, id)
            signals.job_dead.send_robust(Beat, queue=source.name, id=id, reason="poison")
        return [] if answer.next_lease is None else [answer.next_lease + 0.001]

    def _say(self, error: RedisUnavailable | None) -> None:
        if error and not self._away:
            logger.error("Redis is away, the worker waits for it: %s", error)
        elif self._away and not error:
            logger.warning("Redis is back.")
        self._away = error is not None
