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
    assert "Order 2 of" not in text.split("Last records")[1]


def test_page_of_a_message_has_its_last_record_and_traceback(filled, boss):
    message = next(each for each in Logs().common() if each.sample.error)
    text = boss.get(f"{ADMIN}logs/?message={message.fingerprint}").content.decode()
    assert "LookupError: no such order" in text
    assert "dashboard/test_panel.py filled" in text
    assert boss.get(f"{ADMIN}logs/?message=unknown").status_code == 200


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
