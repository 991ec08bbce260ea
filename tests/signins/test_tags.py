from datetime import date, timedelta
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.contenttypes.models import ContentType
from django.template import Context, Template
from django.utils import translation

PAGE = Template("{% load redis_kit_signins %}{% sign_in_calendar user year month %}")


class Cells(HTMLParser):
    """The tags of a page and the text in each."""

    def __init__(self, page):
        super().__init__()
        self.found, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.found.append((tag, dict(attributes), []))

    def handle_data(self, text):
        if self.found and text.strip():
            self.found[-1][2].append(text.strip())

    def all(self, tag):
        return [(attributes, " ".join(texts)) for name, attributes, texts in self.found if name == tag]


def draw(**context):
    return PAGE.render(Context(context))


def test_calendar_is_a_table_with_text_for_all_marks(user):
    for day in (1, 14, 29):
        user.sign_in(date(2024, 2, day))
    page = Cells(draw(user=user, year=2024, month=2))
    assert page.all("caption") == [({}, "February 2024: signed in on 3 days")]
    assert [attributes["abbr"] for attributes, _ in page.all("th")][::6] == ["Sunday", "Saturday"]
    assert all(attributes["scope"] == "col" for attributes, _ in page.all("th"))
    assert [text for _, text in page.all("time")] == [str(day) for day in range(1, 30)]
    assert page.all("time")[28][0] == {"datetime": "2024-02-29"}
    assert [attributes["aria-label"] for attributes, _ in page.all("span")] == ["signed in"] * 3
    assert len(page.all("td")) == 5 * 7
    assert not {"script", "style"} & set(page.tags)
    assert "style=" not in draw(user=user, year=2024, month=2)


def test_week_begins_as_the_language_wants(user):
    with translation.override("de"):
        page = Cells(draw(user=user, year=2024, month=2))
    assert page.all("th")[0][0]["abbr"] == "Montag"
    assert page.all("caption")[0][1].startswith("Februar 2024")


def test_current_month_is_the_default_and_today_is_marked(user):
    page = Cells(Template("{% load redis_kit_signins %}{% sign_in_calendar user %}").render(Context({"user": user})))
    assert [attributes.get("aria-current") for attributes, _ in page.all("td")].count("date") == 1


@pytest.mark.parametrize("someone", [AnonymousUser(), None])
def test_anonymous_user_has_no_calendar(someone):
    assert draw(user=someone, year=2024, month=2).strip() == ""


def test_user_without_the_mixin_is_an_error_that_names_the_proxy(kit):
    with pytest.raises(TypeError, match=r"contenttypes.ContentType lacks it. If a proxy model has the mixin"):
        draw(user=ContentType(pk=1), year=2024, month=2)


def test_page_is_served_while_redis_is_unavailable(user, settings):
    settings.REDIS_KIT = {"CONNECTIONS": {"default": {"URL": "redis://127.0.0.1:1/0"}}}
    assert "temporarily unavailable" in draw(user=user, year=2024, month=2)


def test_page_is_served_for_a_user_whose_zone_does_not_exist(kit, user, caplog):
    kit.options(SIGNINS={"TIMEZONE": lambda user: "UTC+3"})
    user.username = "ann"
    assert "temporarily unavailable" in draw(user=user, year=2024, month=2)
    assert "a calendar was not shown: The time zone of <User: ann> is 'UTC+3'; use a name" in caplog.text


def test_made_up_and_frozen_days_have_marks_of_their_own(kit, user):
    kit.options(SIGNINS={"WINDOW": 62})
    first = (date.today().replace(day=1) - timedelta(1)).replace(day=1)
    user.make_up_sign_in(first)
    user.freeze_sign_ins(first + timedelta(1))
    page = Cells(draw(user=user, year=first.year, month=first.month))
    assert [attributes["aria-label"] for attributes, _ in page.all("span")] == ["made up", "frozen"]
    assert [attributes.get("class") for attributes, _ in page.all("td") if attributes] == [
        "rk-signed-in rk-made-up",
        "rk-frozen",
    ]
