from datetime import date, timedelta

from redis_kit.core.panels import Viewer
from redis_kit.signins.dashboard.panel import SignInsPanel
from redis_kit.signins.days import today
from tests.signins.people import saved
from tests.signins.support.crowd import Crowd


def rows(name, may=True, **asked):
    panel = SignInsPanel()
    panel.viewer = Viewer(lambda permission: may, {"model": "app.User", **asked})
    found = panel.file(name)
    return found and [tuple(row) for row in found]


def test_active_users_are_those_of_sets_in_one_round_trip(kit, trips):
    crowd = Crowd(40, 45).sign_in()
    trips.clear()
    head, *found = rows("active-users")
    assert len(trips) == 1
    assert head == ("day", "users", "in_7_days", "in_30_days", "partial")
    assert 52 * 7 < len(found) <= 53 * 7
    assert found[-60:] == [
        (day, *(len(crowd.on(day - timedelta(window - 1), day)) for window in (1, 7, 30)), int(day == crowd.last))
        for day in (crowd.last - timedelta(ago) for ago in range(59, -1, -1))
    ]


def test_cohorts_are_weeks_of_which_the_last_goes_on(kit):
    crowd = Crowd(40, 45).sign_in()
    head, *found = rows("cohorts")
    assert (len(head), head[:3], head[-1]) == (10, ("week_of", "new_users", "week_1"), "last_is_partial")
    monday = crowd.last - timedelta(crowd.last.weekday())
    assert [row[0] for row in found] == [monday - timedelta(7 * ago) for ago in range(7, -1, -1)]
    before = monday - timedelta(7)
    assert found[-1] == (monday, len(crowd.first_on(monday, crowd.last)), *[""] * 7, 1)
    came = crowd.first_on(before, before + timedelta(6))
    assert found[-2] == (before, len(came), len(came & crowd.on(monday, crowd.last)), *[""] * 6, 1)


def test_days_of_a_user_have_their_kinds(kit):
    user, last = saved(7), today()
    user.sign_in(last - timedelta(3))
    user.sign_in(date(2024, 2, 29))
    user.make_up_sign_in(last - timedelta(2))
    user.freeze_sign_ins(last + timedelta(1))
    assert rows("days", user="7") == [
        ("day", "kind"),
        (date(2024, 2, 29), "sign_in"),
        (last - timedelta(3), "sign_in"),
        (last - timedelta(2), "make_up"),
        (last + timedelta(1), "freeze"),
    ]
    assert rows("days", user="none") == [("day", "kind")]


def test_other_names_are_no_files(kit):
    assert rows("days", may=False, user="7") is None
    assert rows("days") is rows("cohorts", user="7") is rows("others") is None
