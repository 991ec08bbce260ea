import csv
import io
import json
from datetime import UTC, date, datetime, timedelta

import pytest

from redis_kit.signins.database.models import SignInDay
from tests.app.models import User
from tests.signins.people import saved

pytestmark = pytest.mark.django_db

TODAY = datetime.now(UTC).date()


@pytest.fixture
def users(kit):
    for number in range(5):
        for ago in range(4 - number, 4):
            saved(number).sign_in(TODAY - timedelta(ago))


def test_stats_count_users_and_streaks(users, shell):
    code, text, _ = shell("rk_signins", "stats", "--model", "app.User")
    assert code == 0
    assert "in 7 days                   4" in text
    code, text, _ = shell("rk_signins", "stats", "--model", "app.user", "--json")
    assert json.loads(text) == {"model": "app.User", "today": 1, "week": 4, "month": 4, "at_risk": 1, "longest": 4}


def test_days_come_back_after_export_to_the_database(users, kit, shell):
    User.objects.bulk_create(User(pk=number, username=f"user{number}") for number in range(5))
    before = [saved(number).sign_in_summary() for number in range(5)]
    code, text, _ = shell("rk_signins", "export", "--to-database", "--model", "app.User")
    assert (code, text.strip()) == (0, "In the table: 10 days.")
    assert SignInDay.objects.count() == 10
    kit.client.delete(*kit.keys())
    code, text, _ = shell("rk_signins", "rebuild", "--model", "app.User")
    assert (code, text.strip()) == (0, "In Redis: 10 days of 4 users.")
    assert [saved(number).sign_in_summary() for number in range(5)] == before


def test_days_of_deleted_users_do_not_come_back(users, kit, shell):
    User.objects.create(pk=1, username="joe")
    shell("rk_signins", "export", "--to-database", "--model", "app.User")
    kit.client.delete(*kit.keys())
    code, text, errors = shell("rk_signins", "rebuild", "--model", "app.User")
    assert (code, text.strip()) == (0, "In Redis: 1 day of 1 user.")
    assert errors.strip() == "Left out, as they were deleted: 3 users."
    assert [saved(number).sign_in_count() for number in range(5)] == [0, 1, 0, 0, 0]


def test_export_is_csv_that_no_spreadsheet_takes_for_a_formula(kit, shell):
    saved("=1+1").sign_in(date(2026, 1, 2))
    saved("joe").sign_in(date(2026, 1, 3))
    code, text, _ = shell("rk_signins", "export", "--model", "app.User")
    rows = list(csv.reader(io.StringIO(text)))
    assert (code, rows[0], sorted(rows[1:])) == (
        0,
        ["id", "day", "kind"],
        [["'=1+1", "2026-01-02", "sign_in"], ["joe", "2026-01-03", "sign_in"]],
    )
    code, text, _ = shell("rk_signins", "export", "--model", "app.User", "--json")
    assert {json.loads(line)["id"] for line in text.splitlines()} == {"=1+1", "joe"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "rebuild  store the days"),
        (["stats"], 2, "Give --model: one of app.Device, app.User."),
        (["stats", "--model", "app.Usr"], 2, "Did you mean 'app.User'?"),
        (["stats", "--model", "app.Account"], 2, "No model app.Account has SignInMixin."),
        (["rebuild", "--model", "app.User"], 1, "the database has no days of app.User"),
        (["export", "--all"], 2, "unrecognized arguments: --all"),
    ],
)
def test_wrong_calls_say_what_to_do(kit, shell, arguments, code, words):
    found, _, errors = shell("rk_signins", *arguments)
    assert found == code
    assert words in errors


def test_outage_ends_with_69(kit, shell):
    kit.connect({"URL": "redis://127.0.0.1:1/0"})
    for action in ("stats", "export"):
        assert shell("rk_signins", action, "--model", User._meta.label)[:2] == (69, "")
