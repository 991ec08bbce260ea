"""The queues that a worker is given by name: as text, and whether there are such."""

import logging
import re
from argparse import ArgumentTypeError
from collections.abc import Collection

from django.core.management.base import CommandError

from redis_kit.core.errors import InvalidName, RedisFailure
from redis_kit.core.keys import encode
from redis_kit.core.text import did_you_mean
from redis_kit.queues import framework
from redis_kit.queues.tasks import registry

WEIGHT = (1, 1000)
A_WEIGHT = f"a weight is a whole number from {WEIGHT[0]} to {WEIGHT[1]}"
logger = logging.getLogger("redis_kit.worker")


def parse(text: str) -> tuple[tuple[str, ...], tuple[int, ...] | None]:
    """Return names and, where they have some, their weights."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    found = [re.fullmatch(r"(.+):(\d+)", part, re.DOTALL) for part in parts]
    names = tuple(one[1] if one else part for one, part in zip(found, parts, strict=True))
    weights = tuple(int(one[2][:9]) for one in found if one)
    try:
        for name in names:
            encode(name)
    except InvalidName as error:
        raise ArgumentTypeError(str(error)) from error
    if not weights:
        return names, None
    if len(weights) < len(names) or len(set(names)) < len(names):
        raise ArgumentTypeError(f"{text!a}: each queue has a weight, once, or none has one; {A_WEIGHT}")
    if not all(WEIGHT[0] <= weight <= WEIGHT[1] for weight in weights):
        raise ArgumentTypeError(f"{text!a}: {A_WEIGHT}")
    return names, weights


def of_tasks() -> list[str]:
    """Return the queues that the registered tasks and the setting ``TASKS`` name, sorted."""
    named = set(registry.queue_names())
    if framework.FOUND:
        from redis_kit.queues import backend

        named |= backend.queue_names()
    return sorted(named)


def check(names: Collection[str], known: Collection[str], *, weighed: bool) -> None:
    """Warn of queues that nothing knows, and refuse what looks like a wrong weight unless all have one.

    A worker registers its queues, so a wrong name is registered after the first start; what counts is whether a job was
    ever put there. Two round trips, if neither the settings nor a task name one of them; without an answer all is well.
    """
    from redis_kit.queues.monitoring.stats import never_used, queue_names

    strange = [name for name in names if name not in known]
    if not strange:
        return
    try:
        registered, unused = queue_names(), never_used(strange)
    except RedisFailure:
        return
    found = {*known, *registered} - unused
    for name in strange:
        if name not in unused:
            continue
        if ":" in name and name not in registered and len(names) > 1 and not weighed:
            weight = name.rpartition(":")[2]
            told = f"--queue-name: there is no queue {name!a}, and {weight!a} is no weight: {A_WEIGHT}."
            raise CommandError(f"{told} For a new queue of that name, put it into NAMES.", returncode=2)
        hint = did_you_mean(name, sorted(found), "Is the name right?")
        logger.warning("Unknown queue %a: no task uses it and it is empty. %s", name, hint)
