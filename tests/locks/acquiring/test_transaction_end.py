"""The end of a transaction, and locks that are kept until then."""

import asyncio
import contextlib
import gc
import logging
import threading
import unittest

import pytest
from django.db import connections, transaction
from django.test import TestCase
from django.utils.connection import ConnectionDoesNotExist

from redis_kit.locks import Lock
from redis_kit.locks.acquiring import reentrancy as commit
from redis_kit.locks.acquiring.reentrancy import (
    call_at_end,
    check_database,
    in_transaction,
    leases_until_end,
)
from redis_kit.locks.inspection import force_release


@pytest.fixture(autouse=True)
def _real_transactions(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def database(tmp_path, monkeypatch):
    """The alias of a database in a file, so that each thread has a connection of its own."""
    entry = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3"), "OPTIONS": {"timeout": 20}}
    configured = connections.configure_settings({"default": {}, "other": entry})["other"]
    monkeypatch.setitem(connections.settings, "other", configured)
    with connections["other"].cursor() as cursor:
        cursor.execute("CREATE TABLE stock (number integer)")
        cursor.execute("INSERT INTO stock VALUES (0)")
    yield "other"
    connections["other"].close()
    del connections["other"]


@contextlib.contextmanager
def failing(**options):
    """A block that an exception ends."""
    with contextlib.suppress(ZeroDivisionError), transaction.atomic(**options):
        yield
        raise ZeroDivisionError


@pytest.fixture
def ended():
    """What was called at the end of a transaction so far."""
    return []


@pytest.fixture
def register(ended):
    """Have a name noted at the end of the transaction, and with it whether that was still open then."""

    def register(name, database="default"):
        def note():
            assert name not in ended
            ended.append(name)

        call_at_end(database, note)

    return register


def test_commit_is_an_end(register, ended):
    with transaction.atomic():
        register("a")
        assert not ended
    assert ended == ["a"]


def test_rollback_by_an_exception_is_an_end(register, ended):
    with failing():
        register("a")
        assert not ended
    assert ended == ["a"]


def test_rollback_on_request_is_an_end(register, ended):
    with transaction.atomic():
        register("a")
        transaction.set_rollback(True)
        assert not ended
    assert ended == ["a"]


def test_rolling_back_an_inner_block_is_not_the_end(register, ended):
    with transaction.atomic():
        with failing(), transaction.atomic():
            register("a")
        assert not ended
        with transaction.atomic():
            register("b")
        assert not ended
    assert ended == ["a", "b"]


def test_outer_rollback_after_an_inner_commit_is_the_end(register, ended):
    with failing():
        with transaction.atomic(), transaction.atomic(savepoint=False):
            register("a")
        assert not ended
    assert ended == ["a"]


def test_rolled_back_savepoint_is_not_the_end(register, ended):
    with transaction.atomic():
        savepoint = getattr(transaction, "savepoint_create", transaction.savepoint)()  # since Django 6.1
        register("a")
        transaction.savepoint_rollback(savepoint)
        assert not ended
    assert ended == ["a"]


def test_error_that_spoils_the_outer_block_is_seen_at_its_end(register, ended):
    with transaction.atomic():
        with failing(savepoint=False):
            register("a")
        assert transaction.get_rollback()
        assert not ended
    assert ended == ["a"]


def test_durable_block_ends_like_others(register, ended):
    with transaction.atomic(durable=True):
        register("a")
        assert not ended
    assert ended == ["a"]


def test_function_runs_between_those_registered_before_and_after(register, ended):
    with transaction.atomic():
        transaction.on_commit(lambda: ended.append("before"))
        register("a")
        transaction.on_commit(lambda: ended.append("after"))
        register("b")
    assert ended == ["before", "a", "after", "b"]


def test_each_database_has_its_own_transactions(register, ended, database):
    with transaction.atomic():
        assert not in_transaction(database)
        register("at once", database)
        assert ended == ["at once"]
        with transaction.atomic(database):
            assert in_transaction(database)
            register("other", database)
            register("default")
        assert ended == ["at once", "other"]
    assert ended == ["at once", "other", "default"]


def test_each_thread_has_its_own_transactions(database):
    found = []
    with transaction.atomic(database):
        thread = threading.Thread(target=lambda: found.append(in_transaction(database)))
        thread.start()
        thread.join(10)
    assert found == [False]


def test_transaction_is_over_for_the_database_before_the_function_runs(database):
    seen = {}

    def look(name):
        cursor = connections[database].cursor()
        seen[name] = cursor.execute("SELECT number FROM stock").fetchone()[0]
        connections[database].close()

    def from_outside(name):
        thread = threading.Thread(target=look, args=(name,))
        thread.start()
        thread.join(10)

    for number in (1, 2):
        with transaction.atomic(database):
            connections[database].cursor().execute("UPDATE stock SET number = %s", [number])
            call_at_end(database, lambda: from_outside("end"))
            from_outside("block")
            transaction.set_rollback(number == 2, using=database)
        assert seen == {"block": number - 1, "end": 1}


def test_closed_connection_is_an_end(register, ended, database):
    with transaction.atomic(database):
        with transaction.atomic(database):
            register("a", database)
            connections[database].close()
            assert ended == ["a"]
            assert not in_transaction(database)
        register("b", database)
        assert ended == ["a", "b"]
    with transaction.atomic(database):
        register("c", database)
    assert ended == ["a", "b", "c"]


def test_connection_that_vanishes_is_an_end(register, ended, database):
    def vanish():
        transaction.atomic(database).__enter__()
        register("a", database)
        connections[database].connection.close()  # as the server would; Django does not know of it

    thread = threading.Thread(target=vanish)
    thread.start()
    thread.join(10)
    gc.collect()
    assert ended == ["a"]


def test_failed_function_does_not_break_the_commit(register, ended, caplog):
    def fail():
        raise ZeroDivisionError

    for rolled_back in (False, True):
        with transaction.atomic():
            call_at_end("default", fail)
            register(rolled_back)
            transaction.set_rollback(rolled_back)
    assert ended == [False, True]
    assert [record.name for record in caplog.records if record.levelno == logging.ERROR] == ["redis_kit.locks"] * 2


def test_function_is_not_forgotten_where_one_before_it_fails(register, ended):
    def commit():
        with transaction.atomic():
            transaction.on_commit(lambda: 1 / 0)
            register("a")

    with pytest.raises(ZeroDivisionError) as caught:
        commit()
    caught.value.__traceback__ = None
    del caught
    gc.collect()
    assert ended == ["a"]


def test_rollback_waits_for_the_function(ended):
    with failing():
        call_at_end("default", lambda: ended.append(threading.Event().wait(0.2)))
    assert ended == [False]


def test_collector_that_comes_by_at_a_bad_moment_blocks_nobody(ended, monkeypatch):
    monkeypatch.setattr(commit, "ROLLBACK_WAIT", 0.1)
    busy = threading.Lock()

    def note():
        with busy:
            ended.append("a")

    with busy:
        with failing():
            call_at_end("default", note)
        assert not ended
    for thread in threading.enumerate():
        if thread.name.startswith("redis_kit end"):
            thread.join(10)
    assert ended == ["a"]


def test_without_a_transaction_it_is_called_at_once(register, ended):
    assert not in_transaction("default")
    register("a")
    assert ended == ["a"]


def test_database_without_autocommit_is_refused(database):
    check_database(database)
    with transaction.atomic(database):
        check_database(database)
    transaction.set_autocommit(False, using=database)
    with pytest.raises(transaction.TransactionManagementError, match="autocommit"):
        check_database(database)
    with transaction.atomic(database), pytest.raises(transaction.TransactionManagementError, match="autocommit"):
        check_database(database)
    transaction.rollback(using=database)
    transaction.set_autocommit(True, using=database)
    check_database(database)


def test_with_autocommit_turned_off_later_the_end_is_where_django_sees_it(register, ended, database):
    for name, end in (("a", transaction.rollback), ("b", transaction.commit)):
        transaction.set_autocommit(False, using=database)
        with transaction.atomic(database):
            register(name, database)
        assert name not in ended
        end(using=database)
        transaction.set_autocommit(True, using=database)
        assert name in ended


def test_what_is_kept_is_known_until_the_end(database):
    with transaction.atomic(database):
        call_at_end(database, print, lease="a")
        transaction.on_commit(lambda: None, using=database)
        with transaction.atomic(database):
            call_at_end(database, print, lease="b")
        assert leases_until_end(database) == ["a", "b"]
        assert leases_until_end("default") == []
    assert leases_until_end(database) == []


def test_unknown_database_is_an_error():
    for function in (check_database, in_transaction):
        with pytest.raises(ConnectionDoesNotExist):
            function("nowhere")


def lock(name="stock", **options):
    return Lock(name, timeout=1, release="on_commit", **options)


def test_next_holder_sees_what_was_committed(kit, database, waiting):
    read, seen = threading.Event(), []

    def look():
        with lock():
            seen.extend(connections[database].cursor().execute("SELECT number FROM stock").fetchone())
            connections[database].close()
        read.set()

    with transaction.atomic(database):
        with lock(database=database):
            thread = waiting(look)
            connections[database].cursor().execute("UPDATE stock SET number = 1")
        assert not read.wait(0.3)
    assert read.wait(10)
    assert seen == [1]
    thread.join()


def test_lock_is_kept_and_renewed_until_the_transaction_ends(kit, database):
    with transaction.atomic(database):
        with transaction.atomic(database), Lock("a", timeout=0.6, release="on_commit", database=database) as lease:
            pass
        threading.Event().wait(1)
        assert lease.held
        assert Lock("a").locked()
    assert not lease.held
    assert not Lock("a").locked()


def test_rollback_gives_all_locks_back_at_once(kit):
    with failing():
        with failing(), lock("a"), lock("b"):
            pass
        lease = lock("c").acquire()
        lease.release()
        assert [Lock(name).locked() for name in "abc"] == [True] * 3
    assert [Lock(name).locked() for name in "abc"] == [False] * 3
    assert leases_until_end("default") == []


def test_lock_outside_a_transaction_is_released_at_the_end_of_its_block(kit, database):
    with lock(), transaction.atomic():
        assert Lock("stock").locked()
    assert not Lock("stock").locked()
    with transaction.atomic(database):
        with lock():
            pass
        assert not Lock("stock").locked()


def test_async_lock_is_given_back_at_the_end_of_its_block(kit):
    async def main():
        async with lock():
            assert await Lock("stock").alocked()
        return await Lock("stock").alocked()

    assert asyncio.run(main()) is False


def test_lock_that_is_lost_before_the_commit_does_not_break_it(kit, database, caplog):
    with transaction.atomic(database):
        with lock(database=database):
            connections[database].cursor().execute("UPDATE stock SET number = 1")
        force_release("stock")
    assert connections[database].cursor().execute("SELECT number FROM stock").fetchone() == (1,)
    assert any("stock" in record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


class TestInTestCase(TestCase):
    """Django's own blocks around tests are no transaction to wait for."""

    def setUp(self):
        self.ended = []

    def register(self, name):
        call_at_end("default", lambda: self.ended.append(name))

    def test_blocks_of_the_test_case_do_not_count(self):
        assert transaction.get_connection().in_atomic_block
        assert not in_transaction("default")
        check_database("default")
        self.register("a")
        assert self.ended == ["a"]

    def test_commit_happens_where_callbacks_are_captured(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks, transaction.atomic():
            assert in_transaction("default")
            self.register("a")
            with failing():
                self.register("b")
            assert not self.ended
            assert len(leases_until_end("default")) == 2
        assert leases_until_end("default") == []
        assert len(callbacks) == 2
        assert self.ended == ["a", "b"]

    def test_rollback_is_an_end(self):
        with failing(), transaction.atomic():
            self.register("a")
        assert self.ended == ["a"]


def test_end_of_a_test_is_an_end(register, ended):
    class Inner(TestCase):
        def test(self):
            with transaction.atomic():
                register("a")
            assert not ended

        def tearDown(self):
            assert not ended

    result = unittest.TestResult()
    unittest.TestSuite([Inner("test")]).run(result)
    assert result.testsRun == 1
    assert result.wasSuccessful(), result.errors
    assert ended == ["a"]
