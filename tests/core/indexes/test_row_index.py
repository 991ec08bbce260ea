"""Indexes of rows: which changes are marked, who writes them, and what a death at any moment leaves."""

import os
import threading
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.core.signals import request_finished
from django.db import DatabaseError, connection, transaction
from django.db.models import Value
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from redis_kit.bloom.settings import BloomSettings
from redis_kit.core.errors import InvalidValue, RebuildLost, RebuildRunning, RedisUnavailable
from redis_kit.core.indexes import model_index, row_index
from redis_kit.core.indexes.generations import Generations
from redis_kit.core.indexes.row_index import RowIndex, WriterLost
from redis_kit.core.primitive import Primitive
from redis_kit.core.steps import Call
from tests.app.models import Account, Device, Kiosk, Place, Shop, User
from tests.fixtures.process import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class Plain(str):
    """Parameters that say nothing."""

    described = "no parameters"

    @classmethod
    def parse(cls, text):
        return cls(text)


class Names(Primitive):
    """Two hashes of documents, for the generation that answers and the one of a rebuild."""

    component, settings = "bloom", BloomSettings


class NameIndex(RowIndex):
    """An index of the names of rows, kept by this test in hashes of the server."""

    def __init__(self, model, name="names"):
        super().__init__(model, name)
        self.primitive = Names(name)

    @property
    def generations(self):
        return Generations(self.primitive, Plain("p"), lambda each, _: {self.primitive.key(f"docs:{each.id}"): 0})

    def document(self, row):
        if row.name == "bad":
            raise ValueError("a bad row")
        return None if row.name == "hidden" else row.name

    def write(self, documents, gone, writer, rebuild=""):
        generations = self.generations
        shape = self.primitive.run_flow(generations.read())
        if self.primitive.run_flow(_call("GET", self.writer_key)) != writer.encode():
            raise WriterLost("lost")
        if rebuild:
            generations.require(shape, rebuild)
        for each in shape.generations:
            if not rebuild or each.id == rebuild:
                (key,) = generations.keys(each, None)
                for pk, name in documents.items():
                    self.primitive.run_flow(_call("HSET", key, pk, name))
                for pk in gone:
                    self.primitive.run_flow(_call("HDEL", key, pk))

    def stored(self):
        shape = self.primitive.run_flow(self.generations.read())
        (key,) = self.generations.keys(shape.active[0], None)
        pairs = self.primitive.run_flow(_call("HGETALL", key))
        return sorted(value.decode() for value in pairs[1::2])

    def marks(self):
        calls = [_call("ZRANGE", key, 0, -1) for key in self._keys()]
        return [[mark.decode() for mark in self.primitive.run_flow(call)] for call in calls]


def _call(*command):
    return (yield Call(*command))


@pytest.fixture
def index(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = NameIndex(Account)
    index.rebuild()
    return index


def test_committed_changes_are_written(index):
    row = Account.objects.create(name="a")
    assert index.stored() == ["a"]
    row.name = "b"
    with transaction.atomic():
        row.save()
        Account.objects.create(name="c")
        assert index.stored() == ["a"]
    assert index.stored() == ["b", "c"]
    Account.objects.filter(name="b").delete()
    assert index.stored() == ["c"]
    assert index.marks() == [[], []]


def test_transaction_marks_all_its_rows_by_one_call(index, trips):
    Account.objects.create(name="first")  # the server knows the scripts now
    with transaction.atomic():
        for name in "abc":
            Account.objects.create(name=name)
        announced = len(trips)
    commits = [trip for trip in trips[announced:] if "announced" in str(trip) and "writer" not in str(trip)]
    assert len(commits) == 1
    assert index.stored() == ["a", "b", "c", "first"]


def test_rolled_back_change_is_forgotten_after_a_while(index, kit, monkeypatch):
    monkeypatch.setattr(row_index, "GRACE", 0.05)
    with transaction.atomic():
        Account.objects.create(name="a")
        transaction.set_rollback(True)
    assert len(index.marks()[0]) == 1
    wait_for(lambda: index.refresh() or not index.marks()[0])
    assert index.stored() == []


def test_row_whose_process_dies_after_the_commit_is_written(index, monkeypatch):
    monkeypatch.setattr(row_index, "GRACE", 0.05)
    monkeypatch.setattr(NameIndex, "commit", lambda self, pks: None)  # as if the process had died before it
    with transaction.atomic():
        Account.objects.create(name="a")
    assert index.stored() == []
    wait_for(lambda: index.refresh() and index.stored() == ["a"])


def test_new_row_whose_process_dies_ends_the_trust_in_the_index(index, kit, monkeypatch):
    monkeypatch.setattr(row_index, "GRACE", 0.05)
    state = index.generations.state
    assert kit.client.hexists(state, "complete")
    monkeypatch.setattr(NameIndex, "commit", lambda self, pks: None)
    Account.objects.create(name="a")
    monkeypatch.setattr(row_index, "_process", "another")
    wait_for(lambda: index.refresh() is not None and not kit.client.hexists(state, "complete"))
    monkeypatch.undo()


def test_bad_row_is_tried_again_later_and_holds_no_other_up(index, caplog, monkeypatch):
    monkeypatch.setattr(row_index, "RETRY", 0.05)
    with transaction.atomic():
        bad = Account.objects.create(name="bad")
        Account.objects.create(name="good")
    assert index.stored() == ["good"]
    assert "can't take the row" in caplog.text
    Account.objects.filter(pk=bad.pk).update(name="better")
    wait_for(lambda: index.refresh() and index.stored() == ["better", "good"])
    Account.objects.filter(pk=bad.pk).update(name="hidden")
    index.update([bad])
    assert index.stored() == ["good"]


def test_rebuild_takes_what_changes_meanwhile(index, monkeypatch):
    monkeypatch.setattr(row_index, "BATCH", 2)
    rows = [Account(name=str(number)) for number in range(5)]
    Account.objects.bulk_create(rows)
    assert index.stored() == []
    counts = []

    def progress(count):
        counts.append(count)
        if count == 2:  # before and after the place of the rebuild
            Account.objects.filter(name="0").first().delete()
            Account.objects.filter(name="4").first().delete()
            row = Account.objects.get(name="1")
            row.name = "new"
            row.save()

    assert index.rebuild(progress=progress) == 4
    assert counts == [2, 4]
    assert index.stored() == ["2", "3", "new"]
    assert index.marks() == [[], []]


def test_one_writer_at_a_time(index, kit, monkeypatch):
    monkeypatch.setattr(row_index, "PATIENCE", 0.05)
    kit.client.set(index.writer_key, "another")
    Account.objects.create(name="a")
    assert index.stored() == []
    with pytest.raises(RebuildRunning, match="Another process writes"):
        index.refresh()
    with pytest.raises(RebuildRunning):
        index.rebuild()
    kit.client.delete(index.writer_key)
    assert index.refresh() == 1
    assert not kit.client.exists(index.writer_key)


def test_writer_that_paused_for_too_long_writes_nothing(index, kit):
    def paused(count):
        kit.client.set(index.writer_key, "another")

    Account.objects.bulk_create([Account(name="a")])
    with pytest.raises(RebuildLost):
        index.rebuild(progress=paused)
    assert index.stored() == []


def test_change_during_the_write_is_written_again(index, monkeypatch):
    written = []

    def document(row):
        if len(written) == 0:
            Account.objects.filter(pk=row.pk).update(name="second")
            monkeypatch.setattr(row_index.refresher, "add", lambda index: None)
            index.update([row.pk])
        written.append(row.name)
        return row.name

    monkeypatch.setattr(index, "document", document)
    Account.objects.create(name="first")
    assert written == ["first", "second"]
    assert index.stored() == ["second"]


def test_changes_by_parents_children_and_relations_are_followed(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    seen = []
    monkeypatch.setattr(RowIndex, "commit", lambda self, pks: seen.append((self.name, pks)))
    for model, name in ((Place, "places"), (User, "users")):
        NameIndex(model, name)
    shop = Kiosk.objects.create(city="Ulm", takings=1)
    assert {name for name, _ in seen} == {"places"}
    assert all(pks == [str(shop.pk)] for _, pks in seen)
    seen.clear()
    Shop.objects.get(pk=shop.pk).delete()
    assert ("places", [str(shop.pk)]) in seen
    seen.clear()
    user = User.objects.create(username="a")
    group = Group.objects.create(name="g")
    seen.clear()
    user.groups.add(group)
    group.user_set.remove(user)
    assert seen == [("users", [str(user.pk)])] * 2


def test_thread_writes_what_is_committed(index, monkeypatch):
    monkeypatch.setattr(row_index.conf, "tests_run", lambda: False)
    monkeypatch.setattr(row_index.refresher, "QUIET", 0.001)
    monkeypatch.setattr(index, "_read", lambda pks: [Account(pk=int(pk), name="read") for pk in pks])
    index.update([7])
    wait_for(lambda: index.stored() == ["read"])
    assert any(thread.name == "redis-kit-refresher" for thread in threading.enumerate())
    if not (child := os.fork()):
        os._exit(int(bool(row_index.refresher._thread)))
    assert os.waitpid(child, 0)[1] == 0
    row_index.refresher.reset()


def test_error_of_a_write_gives_the_writers_place_back(index, kit, monkeypatch):
    monkeypatch.setattr(row_index, "PATIENCE", 0.05)

    def write(*args, **options):
        raise ValueError("the database is gone")

    with monkeypatch.context() as patch:
        patch.setattr(index, "write", write)
        patch.setattr(row_index.refresher, "add", lambda index: None)
        Account.objects.create(name="a")
        with pytest.raises(ValueError, match="is gone"):
            index.refresh()
    assert not kit.client.exists(index.writer_key)
    assert index.rebuild() == 1


def test_rebuild_goes_on_after_a_batch_whose_reply_was_lost(index, monkeypatch):
    write, lost = index.write, []

    def lose_first(*args):
        write(*args)
        if not lost:
            lost.append(args)
            raise RedisUnavailable("no reply", indeterminate=True)

    for name in "ab":
        Account.objects.create(name=name)
    monkeypatch.setattr(index, "write", lose_first)
    assert index.rebuild() == 2
    assert (len(lost), index.stored()) == (1, ["a", "b"])


def test_writer_whose_reply_was_lost_goes_on(index, kit, monkeypatch):
    """The server took the call of a writer that got no reply: so its place is taken, and its row waits."""
    run = index._run
    calls = []

    def lose(steps):
        reply = run(steps) if not calls else None
        calls.append(reply)
        raise RedisUnavailable("no reply")

    with monkeypatch.context() as patch:
        patch.setattr(row_index.refresher, "add", lambda index: None)
        Account.objects.create(name="a")
    with monkeypatch.context() as patch:
        patch.setattr(index, "_run", lose)
        row_index.refresher._waiting[index] = False
        assert not row_index.refresher.flush()
    assert kit.client.exists(index.writer_key)
    assert not row_index.refresher.flush()
    kit.client.delete(index.writer_key)  # as the lease ends
    assert row_index.refresher.flush()
    assert index.stored() == ["a"]
    row_index.refresher.reset()


@pytest.mark.parametrize("pk", ["x", "1.0", "True", str(10**30)])
def test_mark_that_is_no_key_holds_no_row_up(index, monkeypatch, pk):
    """As of another release, whose model had keys of another type."""
    index.commit([pk])
    Account.objects.create(name="a")
    assert index.stored() == ["a"]
    assert index.marks() == [[], []]


def test_update_takes_keys_of_the_model_only(index):
    row = Account.objects.create(name="a")
    Account.objects.update(name="b")
    for wrong in ("x", None, Account(name="unsaved")):
        with pytest.raises(InvalidValue, match="primary key"):
            index.update([row, wrong])
    for wrong in (None, 5, "12", row):
        with pytest.raises(InvalidValue, match="Give a list of values, not "):
            index.update(wrong)
    assert index.stored() == ["a"]
    index.update([f" {row.pk}"])
    assert index.stored() == ["b"]


def test_bad_row_that_was_saved_with_another_spelling_of_its_key(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    index = NameIndex(Device, "devices")
    monkeypatch.setattr(index, "document", lambda row: 1 / 0)
    index.rebuild()
    device = Device.objects.create(pk=uuid4().hex)
    assert index.marks()[1] == [str(UUID(device.pk))]


@pytest.mark.parametrize("end", ["by its process", "by its request"])
def test_failed_insert_does_not_end_the_trust_in_the_index(index, kit, monkeypatch, end):
    monkeypatch.setattr(row_index, "GRACE", 0.05)
    with pytest.raises(DatabaseError):
        Account.objects.create(name=None)
    if end == "by its request":
        request_finished.send(None)
        monkeypatch.setattr(row_index, "_process", "another")
    wait_for(lambda: index.refresh() == 0 and index.marks() == [[], []])
    assert kit.client.hexists(index.generations.state, "complete")


def test_clearing_a_relation_from_its_other_side_marks_all_rows(kit, monkeypatch):
    monkeypatch.setattr(model_index, "_indexes", [])
    seen = []
    NameIndex(User, "users")
    group = Group.objects.create(name="g")
    users = [User.objects.create(username=name) for name in "ab"]
    group.user_set.set(users)
    monkeypatch.setattr(RowIndex, "commit", lambda self, pks: seen.append(pks))
    group.user_set.clear()
    assert list(map(sorted, seen)) == [sorted(str(user.pk) for user in users)]


def test_rows_of_other_models_are_deleted_in_one_query(index):
    Session.objects.create(session_key="a", expire_date=now())
    with CaptureQueriesContext(connection) as queries:
        Session.objects.filter(session_key="a").delete()
    assert [query["sql"][:6] for query in queries if "session" in query["sql"]] == ["DELETE"]


def test_key_that_the_database_makes_is_announced_as_any_row(index):
    index.announce(Account(pk=Value(1)))
    assert [mark.split(" ")[1] for mark in index.marks()[0]] == [""]


def test_document_that_saves_another_row_ends_no_test(index, monkeypatch):
    def document(row):
        Account.objects.get_or_create(name="second")
        return row.name

    monkeypatch.setattr(index, "document", document)
    Account.objects.create(name="first")
    assert index.stored() == ["first", "second"]
