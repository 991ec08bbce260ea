"""Tasks that run at most once. They are here, since the tests of other features run without the option, too."""

from redis_kit.queues import Snooze, task
from redis_kit.queues.engine.feature import features
from tests.queues.support import tasks
from tests.queues.support.journal import write as journal

ALONE = {"unique": True, "concurrency": 1} if {"unique", "limits"} <= {each.name for each in features()} else {}


@task(at_most_once=True)
def note(name):
    journal(name, "begin")
    journal(name, "end")


@task(at_most_once=True, store_result=False)
def forget(name):
    journal(name, "begin")


@task(at_most_once=True)
def fail(name):
    journal(name, "begin")
    raise ValueError(name)


@task(at_most_once=True)
def snooze(name):
    journal(name, "begin")
    raise Snooze(60)


@task(at_most_once=True)
def die(name):
    tasks.die.call(name)


@task(at_most_once=True, **ALONE)
def die_alone(name):
    """Hold a unique key and the only place of a limit."""
    tasks.die.call(name)


@task(at_most_once=True)
def wait_for_file(name, path):
    tasks.wait_for_file.call(name, path)


@task(at_most_once=True, timeout=0.3)
def never_end(name):
    tasks.never_end.call(name)
