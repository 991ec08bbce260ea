"""Calls go through the outbox: they are stored in the database at once, and sent after the commit."""

import math
from collections.abc import Sequence
from functools import partial
from time import time
from typing import Any

from django.db import transaction

from redis_kit.core.errors import RedisFailure
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues import validation
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.unique import PutResult, UniqueKey, key_of_call
from redis_kit.queues.features.outbox import store
from redis_kit.queues.tasks.enqueue import Enqueuer, NewCall, PackedCall, WaitingCall, described, raise_first
from redis_kit.queues.tasks.task import Task


def send(alias: str, enqueuer: Enqueuer, new: Sequence[NewCall]) -> None:
    """Store calls of a task in a database, and send them after the commit."""
    task = enqueuer.task
    keys = [each.call.key or key_of_call(each.id) for each in new]
    calls = [call._replace(key=key) for call, key in zip(enqueuer.stored(new), keys, strict=True)]
    rows = [_row(task, each.id, call, key) for each, call, key in zip(new, calls, keys, strict=True)]
    numbers = store.store(alias, rows)

    def send_stored() -> None:
        ready = [at for at, key in enumerate(keys) if not store.has_older(alias, numbers[at], key)]
        added = enqueuer.add([new[at] for at in ready], [calls[at] for at in ready], own=True)
        stay, end = list[int](), list[int]()
        for at, answer in zip(ready, added, strict=True):
            if isinstance(answer, PutResult):
                (stay if answer.created and not new[at].call.key else end).append(numbers[at])
            elif isinstance(answer, RedisFailure):
                store.note_failure(alias, answer)
        store.note_sent(alias, stay, end)
        raise_first(answer for answer in added if not isinstance(answer, RedisFailure))

    transaction.on_commit(WaitingCall(send_stored, partial(described, task)), using=alias)


def _row(task: Task[..., Any], id: str, call: PackedCall, key: UniqueKey) -> Any:
    due = 0 if task.run_after is None else validation.moment(task.run_after)
    if task.run_in is not None:
        due = math.ceil(time() * 1000) + validation.milliseconds(task.run_in)
    whole_number("priority", task.priority, validation.PRIORITY)
    return store.new_row(
        queue=ids.queue_of(id),
        job=id,
        body=call.body.decode(),
        priority=task.priority,
        due=due,
        unique_key=key.key,
        unique_until=key.until,
        replace=key.replace,
        lane=call.lane,
    )
