"""Writes that a holder can't do after a later one did."""

import pickle
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.writer import MigrationWriter
from django.db.models import Count, Exists, F, OuterRef
from django.db.models.signals import post_save, pre_delete
from django.test.utils import CaptureQueriesContext

from redis_kit.core.errors import InvalidValue
from redis_kit.locks import Lock, NotHeld, Semaphore, StaleFence, fenced
from tests.app.models import Account, Device, Kiosk, Place, Shop, User

pytestmark = pytest.mark.django_db(transaction=True)


class PrimaryOnly:
    """A router that has no database to read from."""

    def db_for_read(self, model, **hints):
        return "none"

    def db_for_write(self, model, **hints):
        return "default"


@pytest.fixture
def late(kit):
    """A lease that ended by itself."""
    return Lock("a", timeout=0.1).acquire()


@pytest.fixture
def newer(late):
    """The lease after it."""
    return Lock("a").acquire()


@pytest.fixture
def accounts(db):
    """Three rows."""
    return [Account.objects.create(name=name, balance=10) for name in "abc"]


def stored():
    """Return what is in the database: balance and fence of each row."""
    return list(Account.objects.order_by("name").values_list("balance", "fence"))


def test_holder_writes_and_leaves_its_fence(late, accounts, twin):
    assert twin(fenced(Account.objects.filter(name="a"), late).update, balance=11) == 1
    assert twin(fenced(Account.objects.exclude(name="a"), late).update, balance=F("balance") + 2) == 2
    assert stored() == [(11, late.fence), (12, late.fence), (12, late.fence)]


def test_late_holder_changes_nothing_and_is_told(late, newer, accounts, twin):
    mine = Account.objects.filter(name="a")
    assert twin(fenced(mine, newer).update, balance=1) == 1
    with pytest.raises(StaleFence, match=f"app.Account was changed under the newer fence {newer.fence}") as caught:
        twin(fenced(mine, late).update, balance=2)
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (error.model, error.fence, error.newer) == ("app.Account", late.fence, newer.fence)
    assert error.lock_name == "a"
    assert isinstance(error, NotHeld)
    assert stored()[0] == (1, newer.fence)


def test_one_newer_row_refuses_all(late, newer, accounts):
    fenced(Account.objects.filter(name="b"), newer).update()
    with pytest.raises(StaleFence):
        fenced(Account.objects, late).update(balance=0)
    assert stored() == [(10, 0), (10, newer.fence), (10, 0)]


def test_outer_transaction_goes_on_after_a_refusal(late, newer, accounts):
    fenced(Account.objects.filter(name="b"), newer).update()
    with transaction.atomic():
        Account.objects.filter(name="c").update(balance=5)
        with pytest.raises(StaleFence):
            fenced(Account.objects.all(), late).update(balance=0)
        Account.objects.filter(name="a").update(balance=6)
    assert [balance for balance, _ in stored()] == [6, 10, 5]


def test_nothing_that_matches_is_no_error(late, newer, accounts):
    fenced(Account.objects.filter(name="a"), newer).update()
    for nothing in (Account.objects.filter(name="z"), Account.objects.none(), Account.objects.filter(pk__in=[])):
        assert fenced(nothing, late).update(balance=0) == 0
        assert fenced(nothing, late).delete()[0] == 0


def test_filter_may_use_what_is_changed(late, newer, accounts):
    ten = Account.objects.filter(balance=10)
    fenced(Account.objects.filter(name="c"), newer).update()
    with pytest.raises(StaleFence):
        fenced(ten, late).update(balance=0)
    assert fenced(ten.exclude(name="c"), late).update(balance=0) == 2
    assert fenced(ten.annotate(double=F("balance") * 2), newer).update(balance=F("double")) == 1
    assert stored() == [(0, late.fence), (0, late.fence), (20, newer.fence)]


def dependent():
    """Return querysets in which it depends on other rows whether a row matches."""
    poor = Account.objects.filter(owner=OuterRef("owner"), balance=10)
    return [
        Account.objects.filter(owner__accounts__balance=10),
        Account.objects.filter(Exists(poor)),
        Account.objects.annotate(number=Count("owner__accounts")).filter(number__gt=0),
        Account.objects.filter(owner__in=User.objects.filter(accounts__balance=10)),
    ]


@pytest.mark.parametrize("number", range(4))
def test_rows_may_match_because_of_others(late, newer, accounts, number):
    owner = User.objects.create()
    Account.objects.exclude(name="c").update(owner=owner)
    rows = dependent()[number]
    Account.objects.filter(name="b").update(balance=3)
    fenced(Account.objects.filter(name="b"), newer).update()
    with pytest.raises(StaleFence):
        fenced(rows, late).update(balance=0)
    assert stored() == [(10, 0), (3, newer.fence), (10, 0)]
    with CaptureQueriesContext(connection) as queries:
        assert fenced(rows, newer).update(balance=0) == 2
    assert stored() == [(0, newer.fence), (0, newer.fence), (10, 0)]
    # PostgreSQL looks again at a row that it had to wait for, but not at what a subquery found before.
    (update,) = (query["sql"] for query in queries if query["sql"].startswith("UPDATE"))
    assert f"{connection.ops.quote_name('fence')} <= " in update
    assert "SELECT" not in update


@contextmanager
def overtaken(statement, lease):
    """Let the later holder write just before the first statement that begins like this."""
    pending = [1]

    def run(execute, sql, parameters, many, context):
        if sql.startswith(statement) and pending:
            pending.clear()
            with connection.cursor() as cursor:
                cursor.execute("UPDATE app_account SET balance = 7, fence = %s WHERE name = 'a'", [lease.fence])
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(run):
        yield
    assert not pending


@pytest.mark.parametrize("rows", [{"name": "a"}, {"owner__username": "x"}])
@pytest.mark.parametrize("write", ["update", "delete"])
def test_database_compares_while_it_writes(late, newer, accounts, rows, write):
    Account.objects.filter(name="a").update(owner=User.objects.create(username="x"))
    found = fenced(Account.objects.filter(**rows), late)
    with overtaken("UPDATE", newer), pytest.raises(StaleFence):
        found.update(balance=0) if write == "update" else found.delete()
    assert Account.objects.filter(name="a").exists()


def test_delete_goes_the_same_way(late, newer, accounts, twin):
    deleted = []
    pre_delete.connect(lambda instance, **_: deleted.append(instance.name), sender=Account, weak=False, dispatch_uid=1)
    try:
        fenced(Account.objects.filter(name="b"), newer).update()
        with pytest.raises(StaleFence):
            twin(fenced(Account.objects.all(), late).delete)
        assert stored() == [(10, 0), (10, newer.fence), (10, 0)]
        assert twin(fenced(Account.objects.filter(balance=10, fence=0), late).delete) == (2, {"app.Account": 2})
        assert deleted == ["a", "c"]
    finally:
        pre_delete.disconnect(sender=Account, dispatch_uid=1)


def test_database_alone_decides_what_counts(late, accounts):
    lock = Lock("b", timeout=0.1)
    with lock as lease:
        pass
    assert lease.over
    assert fenced(Account.objects.filter(name="a"), lease).update(balance=1) == 1
    next_one = Lock("b").acquire()
    assert fenced(Account.objects.filter(name="a"), lease).update(balance=2) == 1
    fenced(Account.objects.filter(name="a"), next_one).update()
    with pytest.raises(StaleFence):
        fenced(Account.objects.filter(name="a"), lease).update(balance=3)


def test_any_thread_may_use_the_lease(newer, late, accounts):
    seen = []

    def work():
        try:
            seen.append(fenced(Account.objects.filter(name="a"), newer).update(balance=1))
            fenced(Account.objects.filter(name="a"), late).update(balance=2)
        except StaleFence:
            seen.append("refused")
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert seen == [1, "refused"]
    assert stored()[0] == (1, newer.fence)


@pytest.mark.skipif(connection.vendor != "mysql", reason="REPEATABLE READ of others refuses the UPDATE itself")
def test_old_snapshot_hides_no_newer_fence(newer, late, accounts):
    def write():
        fenced(Account.objects.filter(name="a"), newer).update(balance=7)
        connection.close()

    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    with transaction.atomic():
        account = Account.objects.get(name="a")
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(20)
        with pytest.raises(StaleFence):
            account.save_fenced(late)
    assert stored()[0] == (7, newer.fence)


def test_semaphore_with_one_slot_has_fences_too(kit, accounts):
    with Semaphore("a", 1) as first:
        pass
    with Semaphore("a", 1) as second:
        fenced(Account.objects.all(), second).update()
    with pytest.raises(StaleFence):
        fenced(Account.objects.all(), first).update()


def test_writes_go_to_the_database_for_writing(late, accounts, settings):
    settings.DATABASE_ROUTERS = [f"{__name__}.PrimaryOnly"]
    account = accounts[0]
    fenced(Account.objects.filter(name="a"), late).update(balance=1)
    account.save_fenced(late)
    fenced(Account.objects.filter(owner__username="x"), late).delete()
    assert list(Account.objects.using("default").order_by("name").values_list("balance", flat=True)) == [10, 10, 10]


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("sliced", lambda: Account.objects.all()[:1]),
        ("ordered", lambda: Account.objects.order_by("name")),
        ("distinct", lambda: Account.objects.distinct()),
        ("a union", lambda: Account.objects.filter(name="a").union(Account.objects.filter(name="b"))),
        ("one of values", lambda: Account.objects.values("name")),
        ("takes a queryset", lambda: Account),
    ],
)
def test_other_querysets_are_refused_before_any_query(late, django_assert_num_queries, word, rows):
    with django_assert_num_queries(0), pytest.raises(InvalidValue, match=word):
        fenced(rows(), late)


@pytest.mark.parametrize("lease", [None, "a", 17, Lock("a"), Account.objects.all()])
def test_what_is_no_lease_is_refused_before_any_query(django_assert_num_queries, lease):
    with django_assert_num_queries(0):
        with pytest.raises(InvalidValue, match="A lease is what"):
            fenced(Account.objects.all(), lease)
        with pytest.raises(InvalidValue, match="A lease is what"):
            Account(name="a").save_fenced(lease)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (Device, "app.Device has no column for the fence.* Make FencedModelMixin one of its bases"),
        (Kiosk, "The fence of app.Kiosk is in the table of app.Shop"),
    ],
)
def test_model_without_the_column_is_refused_before_any_query(late, django_assert_num_queries, model, text):
    with django_assert_num_queries(0), pytest.raises(ImproperlyConfigured, match=text):
        fenced(model.objects.all(), late)


@pytest.mark.parametrize(
    ("model", "values", "error"),
    [
        (Account, {"fence": 1}, InvalidValue),
        (Shop, {"city": "Rome"}, InvalidValue),
        (Account, {"nothing": 1}, FieldDoesNotExist),
    ],
)
def test_other_values_are_refused(late, model, values, error):
    with pytest.raises(error):
        fenced(model.objects.all(), late).update(**values)


def test_instance_is_saved_under_a_lease(late, newer, twin):
    account = Account(name="a", balance=1)
    twin(account.save_fenced, late)
    assert stored() == [(1, late.fence)]
    account.balance, account.name = 2, "z"
    twin(account.save_fenced, newer, update_fields=["balance"])
    assert account.fence == newer.fence
    with pytest.raises(StaleFence):
        twin(account.save_fenced, late)
    account.refresh_from_db()
    assert (account.name, account.balance, account.fence) == ("a", 2, newer.fence)


def test_saving_under_a_lease_is_a_real_save(late, accounts):
    account, saved = accounts[0], []
    before = account.changed_at
    post_save.connect(lambda instance, **_: saved.append(instance), sender=Account, weak=False, dispatch_uid=1)
    try:
        account.save_fenced(late)
    finally:
        post_save.disconnect(sender=Account, dispatch_uid=1)
    account.refresh_from_db()
    assert account.changed_at > before
    assert saved == [account]


def test_fence_stays_when_the_save_fails(late, newer, accounts):
    account = accounts[0]
    account.name = "b"
    with pytest.raises(DatabaseError):
        account.save_fenced(newer)
    assert (account.fence, stored()[0]) == (0, (10, 0))


def test_late_holder_brings_no_deleted_row_back(late, accounts):
    account = Account.objects.get(name="a")
    Account.objects.filter(name="a").delete()
    with pytest.raises(DatabaseError, match="did not affect any rows"):
        account.save_fenced(late)
    assert len(stored()) == 2


def test_instance_with_a_second_table_is_saved_in_both(late, newer):
    shop = Shop(city="Rome")
    shop.save_fenced(late)
    shop.city = "Oslo"
    shop.save_fenced(newer)
    shop.city = "Bern"
    with pytest.raises(StaleFence):
        shop.save_fenced(late)
    assert Place.objects.get().city == "Oslo"
    assert fenced(Shop.objects.all(), newer).update(takings=1) == 1
    assert fenced(Shop.objects.filter(city="Oslo"), newer).delete()[0] == 2


def test_ordinary_save_does_not_set_the_fence_back(late, newer, accounts):
    loaded_before = Account.objects.get(name="a")
    fenced(Account.objects.filter(name="a"), newer).update()
    loaded_before.balance = 3
    loaded_before.save()
    assert stored()[0] == (3, newer.fence)
    with pytest.raises(StaleFence):
        loaded_before.save_fenced(late)


def test_migration_needs_no_kit():
    written, imports = MigrationWriter.serialize(Account._meta.get_field("fence"))
    assert (written, imports) == (
        "models.BigIntegerField(default=0, editable=False)",
        {"from django.db import models"},
    )
    assert not Account(name="a")._meta.get_field("fence").editable
    assert isinstance(Account._meta.get_field("fence"), models.BigIntegerField)


def test_package_loads_no_models():
    code = (
        "import sys, redis_kit.locks, redis_kit.locks.component; "
        "assert not {'redis_kit.locks.fencing.queryset', 'django.db.models', 'redis'} & sys.modules.keys(); "
        "from django.conf import settings; settings.configure(); from redis_kit.locks import *; import django; "
        "django.setup()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_model_with_a_fence_loads_no_client():
    code = (
        "import sys; from django.conf import settings; settings.configure(); import django; django.setup(); "
        "from redis_kit.locks import FencedModelMixin; assert 'redis' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
