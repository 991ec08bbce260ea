"""The queues of a worker: parsed from ``--queue-name``, or those of all tasks."""

import logging
import re
from argparse import ArgumentTypeError
from collections.abc import Collection

from django.core.management.base import CommandError

from redis_kit.core import conf
from redis_kit.core.errors import InvalidName, RedisFailure
from redis_kit.core.keys import encode
from redis_kit.core.text import did_you_mean
from redis_kit.queues import framework
from redis_kit.queues.engine.spread import spread
from redis_kit.queues.settings import QUEUE_OPTIONS, QueueSettings
from redis_kit.queues.tasks import registry

WEIGHT = (1, 1000)
A_WEIGHT = f"a weight is a whole number between {WEIGHT[0]} and {WEIGHT[1]}"
logger = logging.getLogger("redis_kit.worker")


def parse(text: str) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Return the names and, if they have weights, the weights."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    weighted = [re.fullmatch(r"(.+):(\d+)", part, re.DOTALL) for part in parts]
    names = tuple(match[1] if match else part for match, part in zip(weighted, parts, strict=True))
    weights = tuple(int(match[2][:9]) for match in weighted if match)
    try:
        for name in names:
            encode(name)
    except InvalidName as error:
        raise ArgumentTypeError(str(error)) from error
    if not weights:
        return names, None
    if len(weights) < len(names) or len(set(names)) < len(names):
        raise ArgumentTypeError(f"{text!a}: give each queue one weight, or none of them; {A_WEIGHT}")
    if not all(WEIGHT[0] <= weight <= WEIGHT[1] for weight in weights):
        raise ArgumentTypeError(f"{text!a}: {A_WEIGHT}")
    return names, weights


def checked(text: str) -> str:
    """Return names as they were given, if parse() can read them."""
    if text.rstrip().endswith(","):  # a shell makes two arguments of "a, b"
        hint = "Write the names without blanks between them, such as mail,default."
        raise ArgumentTypeError(f"{text!a} ends with a comma. {hint}")
    parse(text)
    return text


def of_tasks() -> list[str]:
    """Return the queues that the registered tasks and the setting ``TASKS`` name, sorted."""
    named = set(registry.queue_names())
    if framework.FOUND:
        from redis_kit.queues import backend

        named |= backend.queue_names()
    return sorted(named)


def older_shards(names: Collection[str]) -> tuple[str, ...]:
    """Return shards of these queues that get no more jobs and may have some. One round trip, or three if there are any.

    While Redis is unavailable none are known.
    """
    try:
        older = tuple(spread().older(names))
    except RedisFailure:
        return ()
    if older:
        logger.warning("The worker also runs what is left in shards that get no more jobs: %s.", ", ".join(older))
    return older


def check(names: Collection[str], listed: Collection[str], *, weighed: bool) -> None:
    """Warn of queues to work on that are not listed, have no options and were never used.

    So it does of others in ``QUEUE_OPTIONS`` that are not listed and not used, if their names are like listed ones.
    Raise CommandError for a name that ends with a weight.

    A worker registers its queues, so even a wrong name is registered after the first start; therefore a queue counts
    as used if a job was ever added. Two round trips if a name is not listed; no check while Redis is unavailable.
    """
    from redis_kit.queues.queue import over
    from redis_kit.queues.reports.stats import never_used, queue_names

    options = conf.section(QueueSettings).QUEUE_OPTIONS
    hints = {name: hint for name in options if name not in listed and (hint := did_you_mean(name, listed))}
    unlisted = [name for name in names if name not in listed and name not in options]
    if not (hints or unlisted):
        return
    try:
        registered, unused = queue_names(), over("default").run_flow(never_used(unlisted))
    except RedisFailure:
        return
    for name in hints.keys() - registered:
        logger.warning("%s has options of the queue %a, which no task uses. %s", QUEUE_OPTIONS, name, hints[name])
    used = {*listed, *options, *registered} - unused
    for name in filter(unused.__contains__, unlisted):
        if ":" in name and name not in registered and len(names) > 1 and not weighed:
            weight = name.rpartition(":")[2]
            wrong = f"--queue-name: there is no queue {name!a}, and {weight!a} is not a weight: {A_WEIGHT}."
            raise CommandError(f"{wrong} To use a new queue of that name, add it to NAMES.", returncode=2)
        hint = did_you_mean(name, sorted(used), "Is the name right?")
        logger.warning("Unknown queue %a: no task uses it and it is empty. %s", name, hint)
