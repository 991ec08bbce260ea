"""Look-ups that a filter of a model answers: of rows that exist, and of ids that do not, in each state of the filter.

``python -m tests.chaos bloom.guard 100000`` looks that many existing and missing ids up in each state, and prints how
many rows were hidden and how many look-ups of missing ids asked the database. A violation is a row that was hidden, or
more than 1.5 % of the missing ids that reached the database while the filter was complete.
"""

import os
import threading
from dataclasses import dataclass

from redis_kit.bloom import ModelFilter
from redis_kit.core.errors import RedisUnavailable
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import create_tables, stage

MOST = 0.015
FAR = 10**9


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many ids are looked up in each state."""

    count: int


def run(plan):
    """Look ids up, in a database and on a server of its own."""
    from tests.app.models import Account

    create_tables(Account)
    with stage() as place:
        answers = look_up(place.server, Account, plan.count)
    lines = [
        f"{state:34}{hidden:8} of {plan.count:,} rows hidden {asked:10.2%} of missing ids asked the database"
        for state, (hidden, asked) in answers.items()
    ]
    return Outcome("\n".join(["", *lines]), {"wrong": wrong(answers)})


def look_up(server, model, count):
    """Return by state: the rows that were hidden, and the share of missing ids that asked the database."""
    guard = ModelFilter(model, capacity=4 * count)
    answers, rows = {}, count // 4

    def look(state):
        pks = list(model.objects.values_list("pk", flat=True))
        hidden = sum(not guard.may_exist(pk) for pk in (pks * (count // len(pks) + 1))[:count])
        asked = sum(guard.may_exist(FAR + number) for number in range(count))
        answers[state] = hidden, asked / count

    model.objects.bulk_create(model(name=f"first {number}") for number in range(rows))
    look("never built")
    guard.rebuild()
    look("complete")
    for number in range(50):
        model.objects.create(name=f"saved {number}")
    look("after saves")
    _in_other_process(lambda: [model.objects.create(name=f"other {number}") for number in range(50)])
    look("after saves of another process")
    first = model.objects.order_by("-pk").values_list("pk", flat=True)[0] + 1
    guard.add_many(range(first, first + 2 * rows))
    model.objects.bulk_create(model(pk=first + number, name=f"bulk {number}") for number in range(rows))
    look("after bulk_create")
    _raw(model, range(first + rows, first + 2 * rows))
    look("after raw SQL")
    begun, looked = threading.Event(), threading.Event()
    rebuild = threading.Thread(target=guard.filter.rebuild, args=(_pks(model, begun, looked),))
    rebuild.start()
    begun.wait(10)
    look("while it is rebuilt")
    looked.set()
    rebuild.join()
    with server.client() as client:
        client.flushall()
    look("after FLUSHALL")
    guard.rebuild()
    server.stop()
    try:
        look("while Redis is stopped")
    finally:
        server.start()
    _until_it_answers(guard)
    look("after a restart")
    guard.rebuild()
    look("complete again")
    return answers


def wrong(answers):
    """Return the states with a hidden row, or with too many questions to the database."""
    complete = [state for state in answers if state.startswith(("complete", "after saves", "after bulk", "after raw"))]
    return [state for state, (hidden, asked) in answers.items() if hidden or (state in complete and asked > MOST)]


def _in_other_process(work):
    from django.db import connections

    connections.close_all()
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == 0
        return
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def _raw(model, pks):
    from django.db import connection

    columns = "(id, name, balance, fence, changed_at) VALUES (%s, %s, 0, 0, '2026-01-01')"
    sql = f"INSERT INTO {model._meta.db_table} {columns}"
    with connection.cursor() as cursor:
        cursor.executemany(sql, [(pk, f"raw {pk}") for pk in pks])


def _pks(model, begun, looked):
    from django.db import connections

    pks = list(model.objects.values_list("pk", flat=True))
    connections.close_all()  # those of the thread that rebuilds
    for pk in pks:
        yield pk
        begun.set()
        looked.wait(60)


def _until_it_answers(guard):
    for _ in range(500):
        try:
            guard.filter.info()
        except RedisUnavailable:
            threading.Event().wait(0.02)
        else:
            return
