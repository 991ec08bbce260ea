import gzip

import pytest

from demo.access_log import Hit, parse, read

LINE = '203.0.113.7 - - [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 203 "http://x.org/" "Mozilla/5.0 (X11)"'
HIT = Hit("203.0.113.7", "17/May/2015:10:05:03 +0000", "GET", "/a?b=c", "http://x.org/", "Mozilla/5.0 (X11)")


def with_request(request):
    return parse(LINE.replace("GET /a?b=c HTTP/1.1", request))


def test_line_gives_the_address_and_the_request():
    assert parse(LINE) == HIT
    assert parse(f"{LINE}\r\n") == HIT


@pytest.mark.parametrize("user", ["frank", "a user with spaces", '"quoted"', "[odd]"])
def test_name_of_the_user_may_be_anything(user):
    assert parse(LINE.replace("- - [", f"- {user} [")) == HIT


def test_fields_after_the_agent_are_ignored():
    assert parse(f'{LINE} "gzip" 0.012') == HIT


def test_absent_fields_are_empty():
    hit = parse(LINE.replace('"http://x.org/" "Mozilla/5.0 (X11)"', '"-" "-"').replace("200 203", "304 -"))
    assert hit == HIT._replace(referer="", agent="")


def test_escaped_quotes_and_bytes_are_read():
    assert parse(LINE.replace("(X11)", r"\"X\\11\"")).agent == r'Mozilla/5.0 "X\11"'
    assert with_request(r"GET /\xc3\xa9 HTTP/1.1").target == "/%C3%A9"
    assert parse(LINE.replace("(X11)", r"\x41\t\r\nB")).agent == "Mozilla/5.0 A\tB"


def test_bytes_outside_ascii_are_escaped_in_a_target_and_kept_in_an_agent():
    assert with_request("GET /é HTTP/1.1").target == "/%E9"
    assert parse(LINE.replace("X11", "é")).agent == "Mozilla/5.0 (é)"


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS", "PROPFIND"])
def test_any_method_is_read(method):
    assert with_request(f"{method} / HTTP/1.0").method == method


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/2"])
def test_any_version_is_read(version):
    assert with_request(f"GET / {version}") is not None


@pytest.mark.parametrize(
    "request_line",
    [
        *("", "-", "GET /", "GET  / HTTP/1.1", "GET http://x.org/ HTTP/1.1", "GET * HTTP/1.1", "get / HTTP/1.1"),
        *(r"GET /a b HTTP/1.1", r"\x16\x03\x01", r"GET /\x00 HTTP/1.1", r"GET /\r\nX-Evil:1 HTTP/1.1"),
    ],
)
def test_request_that_can_not_be_sent_gives_none(request_line):
    assert with_request(request_line) is None


@pytest.mark.parametrize(
    "line",
    ["", "nonsense", LINE[:60], LINE.removesuffix('"'), LINE.replace(" 200 ", " two "), LINE.replace('"http', "http")],
)
def test_line_that_is_cut_off_or_of_another_format_gives_none(line):
    assert parse(line) is None


def test_file_is_read_plain_or_compressed_whatever_its_name(tmp_path):
    text = f"{LINE}\n\n{LINE[:50]}\n{LINE}"
    (tmp_path / "plain.gz").write_text(text)
    (tmp_path / "packed.log").write_bytes(gzip.compress(text.encode()))
    for name in ("plain.gz", "packed.log"):
        assert list(read(tmp_path / name)) == [HIT, None, HIT]


def test_file_with_any_bytes_is_read(tmp_path):
    (tmp_path / "log").write_bytes(LINE.replace("X11", "\xff\x85").encode("latin-1") + b"\n")
    assert [hit.agent for hit in read(tmp_path / "log")] == ["Mozilla/5.0 (\xff\x85)"]
