"""Calls go through the outbox: they are stored in the database at once, and sent after the commit."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from redis_kit.core.errors import RedisFailure
from redis_kit.core.values.numbers import whole_number
from redis_kit.queues import validation
from redis_kit.queues.engine import ids
from redis_kit.queues.engine.unique import PutResult, UniqueKey, key_of_call
from redis_kit.queues.features.outbox import store
from redis_kit.queues.tasks.enqueue import (
    NewCall,
    PackedCall,
    Stages,
    WaitingCall,
    aput,
    described,
    note_all,
    put,
    put_many,
)
from redis_kit.queues.tasks.task import Task


def send(alias: str, task: Task[..., Any], id: str, call: PackedCall, sent: Callable[[PutResult], None]) -> None:
    """Store a call in a database, and send it after the commit. See tasks.enqueue.send()."""
    key = call.key or key_of_call(id)
    number = store.store(alias, _row(task, id, call, key))

    def send_stored() -> None:
        if store.has_older(alias, number, key):
            return
        try:
            added = put(task, id, call._replace(key=key), own=True)
        except RedisFailure as error:
            store.note_failure(alias, error)
            return
        store.note_sent(alias, number, stays=added.created and not call.key)
        sent(added)

    transaction.on_commit(WaitingCall(send_stored, partial(described, task)), using=alias)


def send_many(alias: str, task: Task[..., Any], new: Sequence[NewCall], stages: Stages) -> None:
    """Store several calls, and send them after the commit. See tasks.enqueue.send_many()."""
    keys = [each.call.key or key_of_call(each.id) for each in new]
    calls = [call._replace(key=key) for call, key in zip(stages.stored(new), keys, strict=True)]
    rows = [_row(task, each.id, call, key) for each, call, key in zip(new, calls, keys, strict=True)]
    numbers = store.store_many(alias, rows)

    def send_stored() -> None:
        ready = [at for at, key in enumerate(keys) if not store.has_older(alias, numbers[at], key)]
        added = put_many(task, [(new[at].id, calls[at]) for at in ready], own=True)
        stay, end = list[int](), list[int]()
        for at, answer in zip(ready, added, strict=True):
            if isinstance(answer, PutResult):
                (stay if answer.created and not new[at].call.key else end).append(numbers[at])
            elif isinstance(answer, RedisFailure):
                store.note_failure(alias, answer)
        store.note_all_sent(alias, stay, end)
        note_all(task, [new[at] for at in ready], added, stages)

    transaction.on_commit(WaitingCall(send_stored, partial(described, task)), using=alias)


async def asend(alias: str, task: Task[..., Any], id: str, call: PackedCall, sent: Callable[[PutResult], None]) -> bool:
    """Store a call, and send it now; False if it stays in the outbox. See tasks.enqueue.asend()."""
    key = call.key or key_of_call(id)
    number = await sync_to_async(store.store)(alias, _row(task, id, call, key))
    if key.replace and await sync_to_async(store.has_older)(alias, number, key):
        return False
    try:
        added = await aput(task, id, call._replace(key=key), own=True)
    except RedisFailure as error:
        store.note_failure(alias, error)
        return False
    await sync_to_async(store.note_sent)(alias, number, stays=added.created and not call.key)
    sent(added)
    return True


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
