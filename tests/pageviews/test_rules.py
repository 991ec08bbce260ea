import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_kit.pageviews.rules import is_bot, is_page_view, opted_out

CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
)


@pytest.mark.parametrize(
    ("method", "status", "content_type", "headers", "counts"),
    [
        ("GET", 200, "text/html", {}, True),
        ("GET", 200, "text/html; charset=utf-8", {}, True),
        ("GET", 200, " Text/HTML ;charset=utf-8", {}, True),
        ("GET", 200, "text/html", {"Sec-Fetch-Dest": "document"}, True),
        ("GET", 200, "text/html", {"Sec-GPC": "1", "DNT": "1"}, True),
        ("HEAD", 200, "text/html", {}, False),
        ("POST", 200, "text/html", {}, False),
        ("get", 200, "text/html", {}, False),
        ("GET\r\n", 200, "text/html", {}, False),
        ("GET", 201, "text/html", {}, False),
        ("GET", 204, "text/html", {}, False),
        ("GET", 206, "text/html", {}, False),
        ("GET", 302, "text/html", {}, False),
        ("GET", 304, "", {}, False),
        ("GET", 304, "", {"Sec-Fetch-Dest": "document"}, True),
        ("GET", 304, "", {"Sec-Fetch-Dest": "empty"}, False),
        ("GET", 304, "", {"Sec-Fetch-Dest": "document", "Sec-Purpose": "prefetch;prerender"}, False),
        ("HEAD", 304, "", {"Sec-Fetch-Dest": "document"}, False),
        ("GET", 404, "text/html", {}, False),
        ("GET", 500, "text/html", {}, False),
        ("GET", 200, "", {}, False),
        ("GET", 200, "application/json", {}, False),
        ("GET", 200, "text/html-fragment", {}, False),
        ("GET", 200, "text/htmlx; text/html", {}, False),
        ("GET", 200, "text/html", {"Sec-Purpose": "prefetch"}, False),
        ("GET", 200, "text/html", {"Sec-Purpose": "prefetch;prerender"}, False),
        ("GET", 200, "text/html", {"Sec-Purpose": "prefetch;anonymous-client-ip"}, False),
        ("GET", 200, "text/html", {"Purpose": "prefetch"}, False),
        ("GET", 200, "text/html", {"X-Purpose": "preview"}, False),
        ("GET", 200, "text/html", {"X-Moz": "Prefetch"}, False),
        ("GET", 200, "text/html", {"Sec-Fetch-Dest": "empty"}, False),
        ("GET", 200, "text/html", {"Sec-Fetch-Dest": "iframe"}, False),
    ],
)
def test_page_view_is_a_page_that_a_person_saw(method, status, content_type, headers, counts):
    assert is_page_view(method, status, content_type, headers) is counts


@pytest.mark.parametrize(
    "agent",
    [
        CHROME,
        "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.6 Safari/605.1.15",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Instagram 400",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) GSA/390.0 Mobile/15E148 Safari/604.1",
        "Mozilla/5.0 (Linux; Android 13; CUBOT X70) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile Safari/537.36",
        "Mozilla/5.0 (Linux; Android 15; SM-S921B; wv) AppleWebKit/537.36 Chrome/142.0.0.0 Telegram-Android/12",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
        "Mozilla/5.0 (Linux; Android 14; wv) AppleWebKit/537.36 Chrome/142.0 Mobile [FB_IAB/FB4A;FBAV/500.0.0]",
        "Opera/9.80 (J2ME/MIDP; Opera Mini/9.80/191.261; U; en) Presto/2.12.423 Version/12.16",
        "Mozilla/5.0 (PlayStation 5 9.00) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.0 Safari/605.1.15",
        "w3m/0.5.3+git20230121",
    ],
)
def test_browser_is_not_a_bot(agent):
    assert not is_bot(agent)


@pytest.mark.parametrize(
    "agent",
    [
        "",
        "   ",
        "node",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        "Mozilla/5.0 (compatible; ClaudeBot/1.0)",
        "Mozilla/5.0 (compatible; ChatGPT-User/1.0)",
        "Mozilla/5.0 (compatible; Bytespider; spider-feedback@bytedance.com)",
        "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/142.0.0.0 Safari/537.36",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "WhatsApp/2.23.20.0",
        "TelegramBot (like TwitterBot)",
        "Mozilla/5.0 (compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
        "Feedly/1.0 (+http://www.feedly.com/fetcher.html; like FeedFetcher-Google)",
        "Mediapartners-Google",
        "curl/8.5.0",
        "Wget/1.21.4",
        "python-requests/2.32.3",
        "Python-urllib/3.11",
        "python-httpx/0.28.1",
        "aiohttp/3.11",
        "Go-http-client/2.0",
        "okhttp/4.12.0",
        "Java/17.0.1",
        "axios/1.7.9",
        "Apache-HttpClient/4.5.14 (Java/17)",
        "PostmanRuntime/7.43.0",
        "Scrapy/2.12 (+https://scrapy.org)",
        "ApacheBench/2.3",
        CHROME + " PTST/250101",
        "BOT",
        CHROME + " " * 200 + "compatible; bot",
    ],
)
def test_program_is_a_bot(agent):
    assert is_bot(agent)


@given(st.text())
def test_any_agent_has_a_result(agent):
    assert is_bot(agent) in (True, False)
    assert is_bot(f"{agent[:300]} bot")


def test_opt_out_is_a_one():
    assert opted_out({"Sec-GPC": "1"})
    assert opted_out({"DNT": "1"})
    assert not opted_out({"DNT": "0", "Sec-GPC": ""})
    assert not opted_out({})
