"""Two runs of a block under once() at the same moment."""

import threading
from contextlib import suppress

import pytest
from django.db import connections

from redis_kit.queues import once
from redis_kit.queues.models import OnceKey


@pytest.fixture
def file_database(tmp_path, django_db_blocker):
    """A database in a file, which two threads may write to, as they can't with one in memory."""
    alias = "file"
    connections.databases[alias] = {**connections["default"].settings_dict, "NAME": str(tmp_path / "db")}
    connections.databases[alias]["OPTIONS"] = {"timeout": 20}
    with django_db_blocker.unblock():
        with connections[alias].schema_editor() as editor:
            editor.create_model(OnceKey)
        yield alias
        connections[alias].close()
    del connections[alias]
    del connections.databases[alias]


@pytest.mark.parametrize("commits", [True, False])
def test_second_run_waits_for_the_end_of_the_first(file_database, commits):
    inside, go_on, firsts = threading.Event(), threading.Event(), []

    def first_run():
        with suppress(RuntimeError), once("a", using=file_database) as first:
            firsts.append(bool(first))
            inside.set()
            go_on.wait(20)
            if not commits:
                raise RuntimeError
        connections[file_database].close()

    def second_run():
        inside.wait(20)
        threading.Timer(0.1, go_on.set).start()
        with once("a", using=file_database) as first:
            firsts.append(bool(first))
            assert go_on.is_set()
        connections[file_database].close()

    threads = [threading.Thread(target=run) for run in (first_run, second_run)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert firsts == [True, not commits]
