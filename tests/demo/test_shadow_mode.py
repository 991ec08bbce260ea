"""The report of shadow mode on a log, compared with an exact count."""

from collections import Counter, defaultdict

from demo import access_log, shadow_mode
from tests.fixtures.real_log import REAL_LOG, needs_real_log

LINE = '{address} - - [17/May/2015:10:{minute:02}:{second:02} +0000] "GET / HTTP/1.1" 200 2 "-" "Mozilla/5.0"\n'


def exact(path):
    """Return the number of requests, and for each address those beyond 60 within a minute."""
    hits = [(access_log.seconds(hit), hit.address) for hit in access_log.read(path) if hit]
    passed, refused = defaultdict(list), Counter()
    for moment, address in sorted(hits):
        if sum(moment - earlier < 60 for earlier in passed[address][-60:]) < 60:
            passed[address].append(moment)
        else:
            refused[address] += 1
    return len(hits), refused


def test_addresses_over_the_rate_are_named_and_a_rate_is_proposed(kit, tmp_path):
    log = tmp_path / "log"
    eager = [LINE.format(address="203.0.113.7", minute=5, second=place % 60) for place in range(90)]
    calm = [LINE.format(address=f"198.51.100.{place}", minute=7, second=1) for place in range(200)]
    log.write_text(
        "".join(
            [*eager, *calm, "no request\n", LINE.replace("17/May", "37/May").format(address="x", minute=1, second=1)]
        )
    )
    report = list(shadow_mode.lines(log))
    assert "it would refuse 30 of 290 requests (10.34%), most of them:" in report
    assert [line.split() for line in report if line.startswith("  ")] == [["203.0.113.7", "30"]]
    assert report[-2] == "Requests of an address in a minute: half 1 or fewer, 99.9 % 90 or fewer, at most 90."
    assert report[-1] == "Proposed rate: 90/m"


@needs_real_log
def test_report_on_a_real_log_equals_an_exact_count(kit):
    sent, refused = exact(REAL_LOG)
    report = list(shadow_mode.lines(REAL_LOG))
    assert (
        f"it would refuse {refused.total():,} of {sent:,} requests ({refused.total() / sent:.2%}), most of them:"
        in report
    )
    assert {line.split()[0]: int(line.split()[1]) for line in report if line.startswith("  ")} == refused
