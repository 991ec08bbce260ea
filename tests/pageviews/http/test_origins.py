"""Where visitors come from: hosts of other sites, and campaigns."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redis_kit.pageviews.http.events import campaign, referring_host


@pytest.mark.parametrize(
    ("referrer", "host"),
    [
        ("https://www.google.com/", "google.com"),
        ("https://News.Example:8443/story?id=1#top", "news.example"),
        ("http://anna:secret@forum.example/thread", "forum.example"),
        ("https://forum.example", "forum.example"),
        ("https://shop.example/cart", ""),
        ("https://www.shop.example:8000/cart", ""),
        ("", ""),
        ("about:blank", ""),
        ("android-app://com.example/", ""),
        ("javascript:alert(1)", ""),
        ("https://", ""),
        ("https://<script>/", ""),
        ("https://a b/", ""),
        ("https://exa\r\nmple/", ""),
        ("https://forum.example/" + "x" * 3000, ""),
    ],
)
def test_host_of_another_site_is_where_a_visitor_comes_from(referrer, host):
    assert referring_host(referrer, "shop.example:8000") == host


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("utm_source=News&utm_medium=email&utm_campaign=may", "news / email / may"),
        ("id=1&utm_source=news", "news / - / -"),
        ("utm_source=a%20b%3Cscript%3E&utm_campaign=%E4%BA%94%E6%9C%88", "a b script / - / 五月"),
        ("utm_source=" + "x" * 100, "x" * 30 + " / - / -"),
        ("utm_medium=email", ""),
        ("utm_source=", ""),
        ("", ""),
        ("utm_source=a&" * 60, ""),
        ("utm_source=a&x=" + "y" * 3000, ""),
    ],
)
def test_campaign_is_named_by_a_link(query, named):
    assert campaign(query) == named


@settings(max_examples=30)
@given(st.text(), st.text())
def test_any_text_gives_a_short_one(text, host):
    assert len(referring_host(f"https://{text}", host)) <= 253
    assert len(campaign(f"utm_source={text}&utm_medium={text}&utm_campaign={text}")) <= 96
