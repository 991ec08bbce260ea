"""Sign-ins: one on the day after the last one, and reads of a user's days and of all users."""

from datetime import date, timedelta
from itertools import count

from django.contrib.auth.models import User

from benchmarks.support.server_cost import Operations, Part
from benchmarks.support.workers.server import Server
from redis_kit.signins.activity import Activity
from redis_kit.signins.days import Moment
from redis_kit.signins.mixin import SignInMixin
from redis_kit.signins.segments import SignInStore
from redis_kit.signins.users import SignInUser

USERS = 1000


def sign_ins(server: Server) -> Part:
    """Return all calls of sign-ins."""
    calls, newcomers, days, day = count(), count(USERS), count(), date(2026, 6, 1)
    user, active = User(pk=0), Activity(User)
    user._state.adding = False

    def sign_in() -> None:
        number = next(calls)
        _sign_in(number % USERS, number // USERS)

    for _ in range(USERS):  # their first sign-ins cost more: they are measured apart
        sign_in()

    set_bit, get_bit, count_bits = (
        server.client.register_script(f"return redis.call('{command}', KEYS[1], unpack(ARGV))")
        for command in ("SETBIT", "GETBIT", "BITCOUNT")
    )
    operations: Operations = {
        "script: SETBIT": lambda: set_bit(["bench:days"], [next(days) % 366, 1]),
        "kit: sign_in": sign_in,
        "kit: first sign_in of a user": lambda: _sign_in(next(newcomers), 0),
        "script: GETBIT": lambda: get_bit(["bench:days"], [next(days) % 366]),
        "kit: marked": lambda: SignInMixin.signed_in_on(user, day),
        "kit: summary": lambda: SignInMixin.sign_in_summary(user),
        "kit: calendar of a month": lambda: SignInMixin.sign_in_calendar(user, 2026, 6),
        "script: BITCOUNT": lambda: count_bits(["bench:days"]),
        "kit: count of a year": lambda: SignInMixin.sign_in_count(user, date(2026, 1, 1), date(2026, 12, 31)),
        "kit: active on a day": lambda: active.active(day),
        "kit: daily_active of 7 days": lambda: active.daily_active(day, day + timedelta(days=6)),
    }
    return Part("sign-ins", operations, (("kit: sign_in", "script: SETBIT", 3.0),), whole=True)


def _sign_in(user: int, day: int) -> None:
    moment = Moment(date(2026, 1, 1) + timedelta(days=day), "0 UTC", 0)
    SignInStore().run_flow(SignInUser(User, user).sign_in(moment))
