"""Records that somebody chose: shown harmless, without secrets, and in 2 kB."""

import asyncio
import logging
import pickle
from decimal import Decimal
from uuid import UUID

import pytest
from django.test import RequestFactory
from django.utils.functional import SimpleLazyObject
from django.views.debug import SafeExceptionReporterFilter, get_default_exception_reporter_filter

from redis_kit.core import activity
from redis_kit.core.web.log_fields import log_requests
from redis_kit.logs import Logs
from redis_kit.logs.buffer import buffer
from redis_kit.logs.record import LIMIT, SIZE, StoredRecord
from tests.app.models import User

SECRET = "hunter2-s3cr3t"
CONTROLS = [*(chr(code) for code in (*range(9), *range(11, 32), 127, 0x85, 0x9B, 0x202E, 0x2028, 0x2066, 0xFEFF))]
SURROGATES = ["\ud800", "\udfff text", "a\udc80b", "\ud83d", "\udc00" * 50]
HTML = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "'\"><b>", "{{ x }}", "{% x %}", "javascript:x"]
FORGED = [
    "x\n2026-01-01 00:00:00 ERROR shop: forged",
    "x\r\nTraceback (most recent call last):\n  forged",
    "x\n\n[01/Jan/2026] forged",
    "x\x1fERROR\x1fforged",
]
ANSI = [f"\x1b[{code}m" for code in range(30, 38)] + ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "\x1bP", "\x08" * 9]
HUGE = ["x" * 10_000_000, "é" * 5_000_000, "\n" * 1_000_000, "\x1b" * 1_000_000, "ab " * 1_000_000]
SECRETS = [
    f"password={SECRET}",
    f"password: {SECRET}",
    f"PASSWORD='{SECRET} and more'",
    f'{{"password": "{SECRET}", "user": "ann"}}',
    f"{{'api_key': '{SECRET} {SECRET}'}}",
    f'{{\\"token\\": \\"{SECRET}\\"}}',
    f"user=ann&access_token={SECRET}&page=2",
    f"Authorization: Bearer {SECRET}",
    f"Authorization: Basic {SECRET}==\r\nHost: shop",
    f'Authorization: Digest username="ann", response="{SECRET}"',
    f"{{'Authorization': 'Bearer {SECRET}'}}",
    f"[(b'authorization', b'Bearer {SECRET}'), (b'host', b'shop')]",
    f"[('Cookie', 'sessionid={SECRET}; csrftoken={SECRET}')]",
    f"Cookie: theme=dark; sessionid={SECRET}",
    f"Set-Cookie: sessionid={SECRET}; Path=/",
    f"X-Api-Key: {SECRET}",
    f"HTTP_X_AUTH={SECRET}",
    f"sent with Bearer {SECRET}",
    f"redis://ann:{SECRET}@host:6379/0",
    f"redis://:{SECRET}@host",
    f"postgres://ann:p@{SECRET}@host/db",
    f"https://{SECRET}@github.com/x",
    f"error: password={SECRET}",
    f"ValueError: the secret: {SECRET}",
    f"PASSPHRASE => '{SECRET}'",
    f"login(user='ann', pwd=\"{SECRET}\")",
    f"signature={SECRET}",
    f"aws_secret_access_key = {SECRET}",
    f"{{'password': ['{SECRET}', '{SECRET}'], 'user': 'ann'}}",
    f"{{'password': {{'old': ['{SECRET}'], 'new': ('{SECRET}', 1)}}}}",
    f"<QueryDict: {{'user': ['ann'], 'password': ['{SECRET}', '{SECRET}']}}>",
    f"psql --password {SECRET} --host db",
    f"<user>ann</user><password>{SECRET}</password>",
    f"jwt={SECRET}",
    f"Key (password)=({SECRET}) already exists.",
    f"{'x' * 3970} {{'password': ['{'y' * 60}', '{SECRET}']}}",
    f"{'x' * 3000} password={SECRET}",
    f"{'x' * 3950} redis://ann:{SECRET}{'y' * 100}@host",
]


class Hostile:
    def __init__(self, error):
        self.error = error

    def __str__(self):
        raise self.error

    __repr__ = __str__


def planted():
    """Yield 200 ways to log what should do no harm, each with what must not be shown."""
    texts = [*CONTROLS, *SURROGATES, *HTML, *FORGED, *ANSI]
    for text in texts:
        yield lambda log, text=text: log.error("Of %s", text), text
    for text in (*texts[:40], *SURROGATES, *FORGED, *ANSI):
        yield lambda log, text=text: raised(log, ValueError(text)), text
    for text in HUGE:
        yield lambda log, text=text: log.error(text), ""
        yield lambda log, text=text: log.error("Of %s and %s", text, 1), ""
        yield lambda log, text=text: raised(log, ValueError(text)), ""
    for text in SECRETS:
        yield lambda log, text=text: log.error(text), SECRET
        yield lambda log, text=text: log.error("Of %s", {"text": 1} if text == "x" else text), SECRET
        if len(text) < 1000:
            yield lambda log, text=text: raised(log, ValueError(text)), SECRET
    for value in (
        {"password": SECRET},
        [("token", SECRET)],
        {"a": {"b": {"Cookie": SECRET}}},
        b"password=" + SECRET.encode(),
    ):
        yield lambda log, value=value: log.error("Of %s", value), SECRET
        yield lambda log, value=value: log.error("Of %(x)r", {"x": value}), SECRET
    yield lambda log: log.error("Login %(password)s", {"password": SECRET}), SECRET
    yield lambda log: log.error("%(user)s logs in: %(api_key)-30.20s", {"api_key": SECRET, "user": "ann"}), SECRET
    for error in (ValueError("x"), RecursionError(), KeyError("y"), UnicodeDecodeError("utf8", b"x", 0, 1, "z")):
        yield lambda log, error=error: log.error("Of %s", Hostile(error)), ""
        yield lambda log, error=error: raised(log, Odd(error)), ""
    yield lambda log: log.error("%s %s", 1), ""
    yield lambda log: log.error("%d", "text"), ""
    yield lambda log: log.error(Hostile(ValueError("x"))), ""
    yield lambda log: log.error(None), ""
    yield lambda log: log.error({"password": SECRET}), SECRET
    yield lambda log: log.error("No error", exc_info=True), ""
    yield lambda log: log.error("Stack", stack_info=True), ""
    yield lambda log: log.error("%s", deep()), ""


class Odd(Exception):
    def __init__(self, error):
        self.error = error

    def __str__(self):
        raise self.error


def deep():
    value = []
    for _ in range(50):
        value = [value]
    return value


def raised(log, error):
    try:
        raise error
    except Exception:
        log.exception("Failed")


def test_two_hundred_planted_records_are_harmless(kit, log, no_thread):
    plants = list(planted())
    assert len(plants) >= 200
    kit.options(LOGS={"RECENT": 1000})
    for plant, _ in plants:
        plant(log)
    assert buffer.waiting() == len(plants)
    assert buffer.flush(60.0)
    raw = kit.raw.lrange(next(name for name in kit.keys() if name.endswith(":recent:ERROR")), 0, -1)
    records = Logs().recent("ERROR", limit=1000)
    assert len(records) == len(raw) == len(plants)
    assert max(map(len, raw)) <= SIZE
    for text, (_, wrong) in zip(reversed(raw), plants, strict=True):
        record = StoredRecord.parse(text)
        shown = "\n".join(map(str, record))
        assert SECRET not in shown
        assert all(each.isprintable() or each == "\n" for each in shown)
        assert not any(line.startswith(("2026-01-01", "Traceback", "[01/Jan")) for line in record.message.split("\n"))
        if wrong in CONTROLS or wrong in ANSI or wrong in SURROGATES:
            assert wrong not in shown
    assert record.logger == "shop.orders"


def test_names_that_the_projects_filter_hides_are_masked(kit, log, no_thread, settings):
    settings.DEFAULT_EXCEPTION_REPORTER_FILTER = "tests.logs.test_record.Filter"
    get_default_exception_reporter_filter.cache_clear()
    log.error("customer=Ann, iban=%s", "DE00 1")
    buffer.flush()
    get_default_exception_reporter_filter.cache_clear()
    assert Logs().recent()[0].message == "customer=Ann, iban=*** 1"


class Filter(SafeExceptionReporterFilter):
    def cleanse_setting(self, key, value):
        return "*" if key == "iban" else super().cleanse_setting(key, value)


@pytest.mark.parametrize("value", [1, "x", None, Decimal("1.5"), UUID(int=7), {"a": 1}, ["b"]], ids=repr)
def test_message_is_that_of_the_time_of_the_call(kit, log, no_thread, value):
    text = f"Of {value}"
    log.error("Of %s", value)
    if isinstance(value, (dict, list)):
        value.clear()
    buffer.flush()
    (record,) = Logs().recent()
    assert (record.message, record.template) == (text, "Of %s")


def test_traceback_has_the_error_and_no_frame_is_kept(kit, log, no_thread):
    raised(log, ValueError("no such order"))
    assert "tb_frame" not in repr(vars(buffer._entries[0].traceback))
    buffer.flush()
    (record,) = Logs().recent()
    assert record.traceback.startswith("Traceback (most recent call last):")
    assert record.traceback.endswith("ValueError: no such order")
    assert record.error == "ValueError"
    assert record.place == "logs/test_record.py raised"


def test_argument_with_a_secret_name_is_masked_and_others_are_not(kit, log, no_thread):
    log.error("%(user)s: 100%% of %(token)05d, %%(key)s", {"user": "ann", "token": 12345})
    buffer.flush()
    assert Logs().recent()[0].message == "ann: 100% of ***, %(key)s"


def test_long_error_leaves_room_for_the_last_frames(kit, log, no_thread):
    def fall(depth):
        if depth:
            fall(depth - 1)
        raise KeyError("deep " + "x" * 5000)

    try:
        fall(60)
    except KeyError:
        log.exception("Failed")
    buffer.flush()
    traceback = Logs().recent()[0].traceback
    assert traceback.count(" in fall") >= 3
    assert 'raise KeyError("deep "' in traceback
    assert "KeyError: 'deep xxx" in traceback
    assert traceback.endswith("…")


def test_notes_and_groups_that_wait_are_small(kit, log, no_thread):
    error = ExceptionGroup("many", [ValueError(number) for number in range(20_000)])
    error.add_note("z" * 5_000_000)
    raised(log, error)
    error = ValueError("x")
    for _ in range(100):
        error.add_note("z" * 1_000_000)
    raised(log, error)
    assert sum(len(pickle.dumps(entry.traceback._str)) for entry in buffer._entries) < 20_000
    assert sum(map(len, buffer._entries[1].traceback.__notes__)) <= 5 * LIMIT
    assert not buffer._entries[0].traceback.exceptions
    buffer.flush()
    group = Logs().recent()[1]
    assert group.error == "ExceptionGroup"
    assert "ExceptionGroup: many (20000 sub-exceptions)" in group.traceback
    assert "ValueError: 3" in group.traceback


class Leaving:
    def __init__(self, error):
        self.error = error

    def __str__(self):
        raise self.error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_end_of_the_process_is_not_held_up(kit, log, no_thread, error):
    with pytest.raises(type(error)):  # a signal's handler may raise it at any time
        log.error(Leaving(error))


@pytest.mark.parametrize(
    "attributes", [{"name": None}, {"pathname": None}, {"funcName": 7}, {"args": {}}, {"msg": None}]
)
def test_odd_record_is_stored_with_the_others(kit, log, no_thread, attributes):
    log.error("Before")
    log.handle(logging.makeLogRecord({"name": "shop", "levelno": 40, "msg": "Odd", **attributes}))
    assert buffer.flush()
    assert len(Logs().recent("ERROR")) == 2


def emitted(log, request):
    log.error("Of a request", extra={"request": request})
    buffer.flush()
    return Logs().recent()[0]


def test_record_has_path_and_user_of_its_request(kit, log, no_thread):
    request = RequestFactory().get("/orders/7/?token=x")
    request.user = SimpleLazyObject(lambda: pytest.fail("asked the database"))
    assert emitted(log, request)[6:8] == ("/orders/7/", "")
    request._cached_user = User(pk=7)
    assert emitted(log, request).user == "7"
    del request._cached_user
    request.user = SimpleLazyObject(lambda: User(pk=8))
    assert str(request.user.pk) == "8"
    assert emitted(log, request).user == "8"
    assert emitted(log, object()).path == ""


def test_middleware_gives_records_path_and_user(kit, log, no_thread):
    def view(request):
        request.user = User(pk=9)
        log.error("In a view")
        return "response"

    assert log_requests(view)(RequestFactory().get("/orders/")) == "response"
    log.error("Outside")
    buffer.flush()
    assert [(each.path, each.user) for each in Logs().recent()] == [("", ""), ("/orders/", "9")]


def test_async_middleware_does_so_too(kit, log, no_thread):
    async def view(request):
        log.error("In a view")
        return "response"

    assert asyncio.run(log_requests(view)(RequestFactory().get("/orders/"))) == "response"
    log.error("Outside")
    assert [entry.context[0] for entry in buffer._entries] == ["/orders/", ""]


def test_record_has_the_id_of_its_job(kit, log, no_thread):
    with activity.doing(fields=lambda: {"job": "01jd3m", "queue": "mail"}):
        log.error("In a job")
    buffer.flush()
    assert Logs().recent()[0].job == "01jd3m"


def test_filters_of_the_handler_hold(kit, log, no_thread):
    log.handlers[0].addFilter(lambda record: "Ann" in record.getMessage())
    log.handlers[0].setLevel(logging.ERROR)
    for name in ("Ann", "Bob"):
        log.error("Of %s", name)
        log.info("Of %s", name)
    assert [entry.message for entry in buffer._entries] == ["Of Ann"]
