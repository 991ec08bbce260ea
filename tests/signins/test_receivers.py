import pytest
from django.contrib.auth.signals import user_logged_in
from django.db import transaction

from redis_kit.core.errors import ConfigurationError
from redis_kit.signins.activity import Activity
from redis_kit.signins.database.models import SignInDay
from tests.app.models import Account, Device, User

pytestmark = pytest.mark.django_db(transaction=True)


def test_log_in_counts_if_the_setting_is_on(kit, caplog):
    user = User.objects.create(username="ann")
    user_logged_in.send(User, request=None, user=user)
    assert Activity(User).active() == 0
    kit.options(SIGNINS={"AT_LOG_IN": True})
    user_logged_in.send(User, request=None, user=user)
    assert Activity(User).active() == 1
    kit.options(CONNECTIONS={"default": {"URL": "redis://127.0.0.1:1/0"}})
    user_logged_in.send(User, request=None, user=user)
    assert "a log-in was not counted" in caplog.text


def no_profile(user):
    raise User.DoesNotExist


def by_attribute(user):
    return user.profile


@pytest.mark.parametrize("zone", [no_profile, by_attribute, "profile.timezone", "never"])
def test_log_in_survives_whatever_the_time_zone_of_the_project_raises(kit, caplog, monkeypatch, zone):
    monkeypatch.setattr(User, "never", property(lambda user: 1 / 0), raising=False)
    kit.options(SIGNINS={"AT_LOG_IN": True, "TIMEZONE": zone})
    user = User.objects.create(username="ann")
    user_logged_in.send(User, request=None, user=user)
    assert "a log-in was not counted: REDIS_KIT['SIGNINS']['TIMEZONE'] is " in caplog.text
    with pytest.raises(ConfigurationError, match=r"can't be read: \w+.*Name an attribute of the instance"):
        user.sign_in()


def test_log_in_survives_a_failure_of_the_database(kit, caplog, monkeypatch):
    kit.options(SIGNINS={"AT_LOG_IN": True, "RECORD": True})
    monkeypatch.setattr(SignInDay.objects, "bulk_create", lambda *args, **options: 1 / 0)
    user_logged_in.send(User, request=None, user=User.objects.create(username="ann"))
    assert "a log-in was not counted: division by zero" in caplog.text


def test_deletion_erases_sign_ins_after_the_commit(kit):
    kit.options(SIGNINS={"RECORD": True})
    users = [User.objects.create(username=name) for name in ("ann", "joe", "sam")]
    for user in users:
        user.sign_in()
    with transaction.atomic():
        User.objects.filter(pk__in=[users[0].pk, users[1].pk]).delete()
        assert len(User.sign_ins.leaderboard(9)) == 3
    assert [id for id, _ in User.sign_ins.leaderboard(9)] == [users[2].pk]
    assert SignInDay.objects.get().object_id == str(users[2].pk)
    with transaction.atomic():
        users[2].delete()
        transaction.set_rollback(True)
    assert len(User.sign_ins.leaderboard(9)) == SignInDay.objects.count() == 1


def test_cascade_and_other_keys_erase_too(kit):
    device = Device.objects.create()
    device.sign_in()
    device.delete()
    assert Device.sign_ins.leaderboard(9) == []
    Account.objects.create(name="a").delete()  # a model without sign-ins


def test_deletion_while_redis_is_away_says_what_to_do(kit, caplog):
    user = User.objects.create(username="ann")
    user.sign_in()
    connected = kit.settings.REDIS_KIT
    pk = user.pk
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    user.delete()
    assert f"app.User {pk} was deleted, and its sign-ins were not: run User(pk={pk}).erase_sign_ins()" in caplog.text
    kit.settings.REDIS_KIT = connected
    assert User(pk=pk).erase_sign_ins()
    assert User.sign_ins.leaderboard(9) == []
