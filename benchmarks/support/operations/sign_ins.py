"""Sign-ins: one on the day after the last one, and reads of a user's days and of all users."""

from datetime import date, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import User

from benchmarks.support.server_cost import Operations, Part
from benchmarks.support.workers.server import Server
from redis_kit.signins.activity import Activity
from redis_kit.signins.history import History

USERS = 1000


def sign_ins(server: Server) -> Part:
    """Return all calls of sign-ins."""
    histories, days, day = [History(_stored(User(pk=pk))) for pk in range(USERS)], count(), date(2026, 6, 1)
    history, active = histories[0], Activity(User)

    def sign_in() -> None:
        number = next(days)
        histories[number % USERS].sign_in(date(2026, 1, 1) + timedelta(days=number // USERS))

    set_bit, get_bit, count_bits = (
        server.client.register_script(f"return redis.call('{command}', KEYS[1], unpack(ARGV))")
        for command in ("SETBIT", "GETBIT", "BITCOUNT")
    )
    operations: Operations = {
        "script: SETBIT": lambda: set_bit(["bench:days"], [next(days) % 366, 1]),
        "kit: sign_in": sign_in,
        "script: GETBIT": lambda: get_bit(["bench:days"], [next(days) % 366]),
        "kit: marked": lambda: history.marked(day),
        "kit: streak": lambda: history.streak(day),
        "kit: longest": history.longest,
        "kit: calendar of a month": lambda: history.calendar(2026, 6, day),
        "script: BITCOUNT": lambda: count_bits(["bench:days"]),
        "kit: count of a year": lambda: history.count(date(2026, 1, 1), date(2026, 12, 31)),
        "kit: active on a day": lambda: active.active(day),
        "kit: daily_active of 7 days": lambda: active.daily_active(day, day + timedelta(days=6)),
    }
    return Part("sign-ins", operations, (("kit: sign_in", "script: SETBIT", 3.0),))


def _stored(user: Any) -> Any:
    user._state.adding = False
    return user
