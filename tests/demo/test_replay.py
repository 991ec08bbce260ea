"""``rk_demo --replay``: a small log with known figures, and a real one if it is available."""

import gzip
import re
from itertools import islice
from typing import NamedTuple

import pytest

from demo.access_log import read
from demo.management.commands.rk_demo import Command
from redis_kit.pageviews.rules import is_bot
from tests.fixtures.real_log import REAL_LOG, needs_real_log

pytestmark = pytest.mark.alone(15)

LINES = 500  # of the real log
FIREFOX, SAFARI, BOT = (
    "Mozilla/5.0 (X11) Firefox/140.0",
    "Mozilla/5.0 (Mac) Safari/605.1",
    "Examplebot/2.1 (+http://x.org)",
)
ROW = re.compile(r"^(\S.*?) +([\d,]+) +([\d,]+) +([+-][\d.]+ %) +([\d,]+) +([\d,]+) +([+-][\d.]+ %)$", re.MULTILINE)


class Row(NamedTuple):
    views: int
    exact_views: int
    visitors: int
    exact_visitors: int


def table(text):
    """Return the figures of the comparison by page."""
    return {row[1]: Row(*(int(row[place].replace(",", "")) for place in (2, 3, 5, 6))) for row in ROW.finditer(text)}


def refused(demo):
    """Return how many requests the throttle refused."""
    return int(re.search(r"Refused by the throttle: ([\d,]+)", demo.text)[1].replace(",", ""))


def line(address, path, *, agent=FIREFOX, method="GET", referer="-"):
    return f'{address} - - [17/May/2015:10:05:03 +0000] "{method} {path} HTTP/1.1" 200 203 "{referer}" "{agent}"\n'


def small_log():
    yield from (line(f"198.51.100.{place % 20}", "/popular", agent=FIREFOX) for place in range(60))
    yield from (line("198.51.100.1", "/popular?page=2", agent=SAFARI, referer="http://x.org/") for _ in range(2))
    yield from (line("198.51.100.1", "/popular", agent=agent) for agent in (BOT, "-", "curl/8.0"))
    yield from (line("198.51.100.1", "/popular", method=method) for method in ("HEAD", "POST", "OPTIONS"))
    yield from (line(f"2001:db8:7:{net}::{host}", "/six") for net in (1, 2) for host in (1, 2, 3))
    yield from (line("198.51.100.2", path) for path in ("/caf%C3%A9", r"/caf\xc3\xa9", "//caf%C3%A9", f"/{'x' * 600}"))
    yield from (line(host, "/hosts") for host in ("a.example.org", "b.example.org"))
    yield line("198.51.100.3", "/", agent=SAFARI)
    yield from (line("203.0.113.9", "/greedy") for _ in range(340))
    yield "no line of a log\n"
    yield line("198.51.100.4", "/cut off")


@pytest.fixture(scope="module")
def small(start, folder):
    (folder / "small.log").write_text("".join(small_log()))
    demo = start("--replay", str(folder / "small.log"), "--rate", "2000")
    assert demo.ended(seconds=60) == 0, demo.text
    return demo


def test_views_and_visitors_of_a_log_are_counted_by_the_kits_rules(small):
    rows = table(small.text)
    assert rows["/popular"] == Row(62, 62, 21, 21)
    assert rows["/six"] == Row(6, 6, 2, 2)  # two networks of /64
    assert rows["/café"] == Row(2, 2, 1, 1)
    assert rows["//café"] == Row(1, 1, 1, 1)
    assert rows["/hosts"] == Row(2, 2, 1, 1)  # names are not addresses
    assert rows["/"] == Row(1, 1, 1, 1)
    assert rows[f"/{'x' * 15}…{'x' * 19}"] == Row(1, 1, 1, 1)


def test_refused_requests_are_counted_as_refusals_and_not_as_views(small):
    count = refused(small)
    assert 1 <= count <= 40
    assert table(small.text)["/greedy"] == Row(340 - count, 340 - count, 1, 1)


def test_lines_without_a_request_are_left_out_and_their_number_is_printed(small):
    assert "Lines left out because they hold no request: 2." in small.text
    sent = len(list(small_log())) - 2
    assert re.search(rf"^{sent:,} requests in ", small.text, re.MULTILINE)


def test_rule_is_printed_and_nothing_is_left(small):
    assert "A page view is a GET that the site answered with a page" in small.text
    assert small.leaves_nothing()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no request in Combined Log Format"),
        (b"\n \n", "holds no request in Combined Log Format"),
        (b"no line of a log\nnor this\n", "holds no request in Combined Log Format"),
        # Without a time, so that each process that collects the tests gives them the same names.
        (gzip.compress(b"", mtime=0), "holds no request in Combined Log Format"),
        (gzip.compress(b"no line of a log\n" * 9, mtime=0)[:-9], "can't be read"),
        (b"\x1f\x8bno gzip", "can't be read"),
    ],
)
def test_file_without_a_request_is_refused(tmp_path, capsys, content, message):
    log = tmp_path / "none.log"
    log.write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        Command().run_from_argv(["manage.py", "rk_demo", "--replay", str(log)])
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert f"argument --replay: '{log}' {message}" in output.err
    assert output.out == ""


@needs_real_log
def test_views_of_a_real_log_are_exact_and_visitors_within_two_percent(start, folder):
    log = folder / "real.log"
    with gzip.open(REAL_LOG) as lines:
        log.write_bytes(b"".join(islice(lines, LINES)))
    demo = start("--replay", str(log), "--rate", "2000")
    assert demo.ended(seconds=100) == 0, demo.text
    assert re.search(rf"^{LINES:,} requests in ", demo.text, re.MULTILINE)
    rows = table(demo.text)
    assert len(rows) == 11
    asked = [hit for hit in read(log) if hit.method == "GET" and not is_bot(hit.agent)]
    assert len(asked) > 300
    assert len(asked) - refused(demo) <= rows["In all"].exact_views <= len(asked)
    for page, row in rows.items():
        assert row.views == row.exact_views, page
        # One collision in a sketch of few visitors is more than two per cent.
        assert abs(row.visitors - row.exact_visitors) <= max(0.02 * row.exact_visitors, 1), page
