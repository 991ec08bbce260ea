"""The page about logs, and who sees it."""

import pytest

from redis_kit.logs import Logs
from redis_kit.logs.buffer import buffer
from tests.fixtures.dashboard import ADMIN

pytestmark = [pytest.mark.usefixtures("no_thread"), pytest.mark.django_db]


@pytest.fixture
def filled(kit, log):
    for number in range(3):
        log.error("Order %d of <b>Ann</b>", number)
    log.warning("Slow: %s", "password=hunter2")
    try:
        raise LookupError("no such order")
    except LookupError:
        log.exception("Failed")
    buffer.drop()
    buffer.flush()


def test_page_has_messages_and_records(filled, boss):
    text = boss.get(f"{ADMIN}logs/").content.decode()
    assert "Order %d of &lt;b&gt;Ann&lt;/b&gt;" in text
    assert "Order 2 of &lt;b&gt;Ann" in text
    assert "LookupError" in text
    assert "hunter2" not in text
    assert "new in this hour" in text


def test_search_is_by_level_and_text(filled, boss):
    text = boss.get(f"{ADMIN}logs/?level=WARNING").content.decode()
    assert "Slow: password=***" in text
    assert "Order 2 of" not in text
    text = boss.get(f"{ADMIN}logs/?text=ORDER+1").content.decode()
    assert "Order 1 of" in text
    assert "Order 2 of" not in text


def test_page_of_a_message_has_its_last_record_and_traceback(filled, boss):
    message = next(each for each in Logs().common() if each.sample.error)
    text = boss.get(f"{ADMIN}logs/?message={message.fingerprint}").content.decode()
    assert "LookupError: no such order" in text
    assert "dashboard/test_panel.py filled" in text
    assert text.count("<details id") == text.count(" open>") + 1  # the message and the traceback, not the data
    assert "<title>Failed" in text
    text = boss.get(f"{ADMIN}logs/?message=unknown").content.decode()
    assert "<title>unknown" in text
    assert "No record matches." in text


def test_link_of_a_record_shows_it(filled, boss):
    records = [each for each in Logs().recent() if each.message.startswith("Order")]
    for record in records:
        text = boss.get(f"{ADMIN}logs/?message={record.id}").content.decode()
        listing, table = text.split("<pre")[1].split("</pre>")[0], text.split("Last records")[1]
        assert listing.endswith(f"{record.message.replace('<', '&lt;').replace('>', '&gt;')}")
        assert all(f"?message={each.id}" in table for each in records)
    text = boss.get(f"{ADMIN}logs/?message={records[0].fingerprint}.20200101").content.decode()
    assert "Last record<" in text


def test_oldest_record_of_many_has_a_page(kit, log, boss):
    for number in range(50):
        log.error("Order %d", number)
    buffer.flush()
    oldest = Logs().recent()[-1]
    text = boss.get(f"{ADMIN}logs/?message={oldest.id}").content.decode()
    assert "<title>Order 0 |" in text
    assert text.split("Last records")[1].count("?message=") == 20


def test_record_beyond_the_limit_of_messages_has_a_page(kit, log, boss):
    kit.options(LOGS={"FINGERPRINTS": 1})
    log.error("Order %d", 1)
    log.error("Cart %d", 1)
    buffer.flush()
    for record in Logs().recent():
        text = boss.get(f"{ADMIN}logs/?message={record.id}").content.decode()
        assert f"<title>{record.message}" in text
        assert text.count(record.message) >= 3


def test_long_lists_have_pages_and_the_range_is_one_of_those_offered(kit, log, boss):
    for number in range(25):
        log.error(f"Kind {number}")
    buffer.flush()
    texts = [boss.get(f"{ADMIN}logs/?page={page}&range=24").content.decode() for page in (1, 2, 3)]
    assert [text.split("Most common messages")[1].split("Last records")[0].count("?message=") for text in texts] == [
        *(10, 10, 5)
    ]
    assert "Page 2 of 3" in texts[1]
    assert "range=24" in texts[1].split("Page 2 of 3")[0].split("rk-pages")[1]
    text = boss.get(f"{ADMIN}logs/?range=999").content.decode()
    assert 'aria-current="true">1 hour<' in text
    texts = [boss.get(f"{ADMIN}logs/?level=error&page={page}").content.decode() for page in (1, 2)]
    assert [text.count("?message=") for text in texts] == [20, 5]
    assert "Records by hour" not in texts[0]


def test_staff_without_the_permission_see_nothing(filled, signed_in):
    viewer = signed_in("view_dashboard", "view_server")
    assert viewer.get(f"{ADMIN}logs/").status_code == 403
    assert viewer.get(f"{ADMIN}logs/fragment/").status_code == 403
    overview = viewer.get(ADMIN).content.decode()
    assert "dashboard/logs/" not in overview
    assert "Dropped records" not in overview


def test_tile_has_the_errors_of_the_hour(filled, boss):
    overview = boss.get(ADMIN).content.decode()
    assert "Dropped records" in overview
    assert "Errors in each of 24 hours" in overview
