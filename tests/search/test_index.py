"""An index over a model: what is found, in which order, and what answers while the index can't."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from redis_kit.core.errors import ConfigurationError, InvalidValue, RedisUnavailable
from redis_kit.search import Analyzer, Facet, IndexMissing, SearchIndex, Sort, Text, engine, refresh
from redis_kit.search.documents import Document
from tests.app.models import Device, Page

NEW = count(-1, -1)  # keys that no sequence of a database gives

LOCKS = {"title": "Redis locks", "body": "A fair semaphore, and a lock.", "tags": ["db", "locks"], "votes": 3}
JAVA = {
    "title": "Java threads",
    "body": "A semaphore that is not fair. Redis is not here.",
    "tags": ["java"],
    "votes": 9,
}
CHINESE = {"title": "分布式锁", "body": "用文件系统实现的锁", "tags": ["zh"], "votes": 1}


@pytest.fixture
def three(pages):
    """Three pages, by their keys 1 to 3."""
    for number, values in enumerate((LOCKS, JAVA, CHINESE), 1):
        Page.objects.create(pk=number, published=datetime(2026, number, 1, tzinfo=UTC), **values)
    return pages


@pytest.mark.parametrize(
    ("text", "options", "ids"),
    [
        ("redis", {}, [1, 2]),
        ("REDIS Löck", {}, [1, 2]),
        ("+redis +fair", {}, [1, 2]),
        ("semaphore -java", {}, [1]),
        ('"fair semaphore"', {}, [1]),
        ('semaphore -"fair semaphore"', {}, [2]),
        ("-redis", {}, []),
        ("unknown", {}, []),
        ("", {}, []),
        ("文件系统", {}, [3]),
        ("“系统实现”", {}, [3]),
        ('"件文"', {}, []),
        ("", {"tags": "db"}, [1]),
        ("redis", {"tags": ["java", "locks"]}, [1, 2]),
        ("redis", {"tags": None}, [1, 2]),
        ("redis", {"tags": "none"}, []),
        ("redis", {"order": "votes"}, [1, 2]),
        ("redis", {"order": "-votes"}, [2, 1]),
        ("redis", {"order": "-published"}, [2, 1]),
        ("redis", {"boost": {"votes": 0.9}}, [2, 1]),
        ("redis", {"boost": {"votes": 0, "published": 0.9}}, [2, 1]),
        ("redis", {"limit": 1, "offset": 1}, [2]),
        ("rediz", {}, []),
        ("rediz", {"fuzzy": True}, [1, 2]),
        ("thraeds", {"fuzzy": True}, [2]),
    ],
)
def test_query_finds(three, text, options, ids):
    assert three.search(text, **options).ids == ids


def test_twins_and_servers_agree(any_kit, page_index, twin, twin_search):
    page_index.instance.rebuild()
    for values in (LOCKS, JAVA):
        Page.objects.create(pk=next(NEW), **values)
    result = twin_search(page_index, "redis fair", facets=("tags",), boost={"votes": 0.2})
    assert (result.total, result.source, len(result.facets["tags"])) == (2, "index", 3)
    parts = twin(result.explain, result.ids[0])
    assert sum(parts.values()) == pytest.approx(result.scores[str(result.ids[0])], abs=1e-3)


@hypothesis(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.one_of(st.text(max_size=30), st.text('+-"a中 éß\x00\ud800{}*', max_size=20)))
def test_any_text_is_a_query(three, text):
    assert three.search(text).total <= 3


def test_long_and_strange_documents_are_taken(pages):
    strange = "{a}*[b]\x01 " + "x" * 10**7
    Page.objects.create(
        pk=next(NEW), title="{rk}:\t= <", body=strange, tags=["{x} =y", "é" * 500, 7, None, ""], votes=-(2**31)
    )
    result = pages.search("rk", facets=("tags",))
    assert result.total == 1
    assert sorted(map(len, result.facets["tags"])) == [1, 6, 117]
    assert pages.search("", tags="é" * 500).total == 1


def test_lone_surrogates_are_left_out(pages):
    columns = pages.instance.columns
    values = {"title": "a \ud800b", "body": "", "tags": ["\ud800"], "votes": 0, "published": None}
    document = Document.of(values, columns.values(), pages.instance.analyzer)
    assert document.record.encode()
    assert document.counts == {"a": 3.0, "b": 3.0}
    assert document.values == ("=tags=?",)


def test_facets_are_counted(three):
    assert three.search("redis", facets=("tags",)).facets == {"tags": {"db": 1, "java": 1, "locks": 1}}
    Page.objects.create(pk=next(NEW), title="Redis again", tags=["db", "new"])
    assert three.search("redis", facets=("tags",)).facets == {"tags": {"db": 2, "java": 1, "locks": 1, "new": 1}}
    Page.objects.get(pk=1).delete()
    assert three.search("redis", facets=("tags",)).facets == {"tags": {"db": 1, "java": 1, "new": 1}}


def test_hits_have_rows_and_marks_by_one_query(three, django_assert_num_queries):
    result = three.search("fair semaphore")
    with django_assert_num_queries(1):
        hits = list(result)
    assert [hit.id for hit in hits] == ["1", "2"]
    assert hits[0].snippets["body"] == "A <mark>fair</mark> <mark>semaphore</mark>, and a lock."
    assert hits[0].score > hits[1].score
    Page.objects.filter(pk=1)._raw_delete("default")  # without a signal
    assert [row.pk for row in result.to_queryset()] == [2]
    assert list(three.search("unknown").to_queryset()) == []


def test_hits_are_read_in_async_code(three):
    async def read():
        return [hit.id async for hit in await three.asearch("semaphore")]

    assert sorted(asyncio.run(read())) == ["1", "2"]


def test_changes_are_followed(three, django_assert_num_queries):
    row = Page.objects.get(pk=1)
    row.title = "Valkey locks"
    row.save(update_fields=["title"])
    assert three.search("valkey").ids == [1]
    assert three.search("redis").ids == [2]
    row.tags = ["cache"]
    row.save()
    assert three.search("", tags="db").ids == []
    assert three.search("", tags="cache").ids == [1]
    Page.objects.filter(pk=2).delete()
    assert three.search("redis").ids == []
    Page.objects.bulk_create([Page(pk=9, title="Redis in bulk")])
    three.instance.update([9])
    assert three.search("redis").ids == [9]
    info = three.instance.info()
    assert (info.documents, info.complete, info.waiting) == (3, True, 0)


def test_save_of_other_fields_changes_nothing(kit, page_index, trips):
    class TitleIndex(SearchIndex):
        model = Page
        title = Text()
        fields = frozenset({"title"})

    TitleIndex.instance.rebuild()
    page = Page.objects.create(pk=next(NEW), title="a")
    stats = next(key for key in kit.keys() if "TitleIndex}:stats" in key)
    before = kit.client.hget(stats, "changes")
    page.save()
    assert kit.client.hget(stats, "changes") == before
    trips.clear()
    page.save(update_fields=["votes"])
    assert [trip for trip in trips if "TitleIndex" in str(trip)] == []


def test_pages_of_a_result_are_stable_while_documents_change(three):
    for number in range(20):
        Page.objects.create(pk=100 + number, title="sea", body="sea " * number)
    first = three.search("sea", limit=10).ids
    Page.objects.create(pk=next(NEW), title="sea sea sea")
    Page.objects.filter(pk__in=first[:3]).delete()
    second = three.search("sea", limit=10, offset=10).ids
    assert sorted(first + second) == list(range(100, 120))
    assert three.search("sea", limit=100).total == 18  # a first page is new


def test_one_round_trip_is_enough(three, trips):
    three.search("redis", facets=("tags",))
    trips.clear()
    three.search("fair", facets=("tags",), order="-votes")
    assert len(trips) == 1
    trips.clear()
    three.search("fairr", fuzzy=True)
    assert len(trips) == 2


def test_rebuild_leaves_no_gap_and_no_keys(three, kit):
    before = len(kit.keys())
    old = three.instance.generations.shape
    Page.objects.filter(pk=2)._raw_delete("default")
    assert three.instance.rebuild() == 2
    assert three.instance.generations.shape != old
    assert three.search("redis").ids == [1]
    three.instance.rebuild()
    assert len([key for key in kit.keys() if old.active[0].id in key]) == 0
    assert len(kit.keys()) < before + 5
    assert three.instance.clear() is True
    assert three.instance.clear() is False
    assert [key for key in kit.keys() if "hits" not in key and "header" not in key and "names" not in key] == []


class TestFallback:
    """What answers while the index can't."""

    @pytest.fixture
    def index(self, kit, page_index):
        class WithFallback(SearchIndex):
            model = Page
            title = Text()

            def fallback(self, text, filters):
                return Page.objects.filter(title__icontains=text).order_by("title")

        Page.objects.bulk_create([Page(title="Redis b"), Page(title="Redis a"), Page(title="other")])
        return WithFallback

    def test_index_that_was_never_built(self, index, page_index, caplog, twin_search):
        result = twin_search(index, "redis", limit=1, offset=1)
        assert (result.source, result.total, [hit.row.title for hit in result]) == ("database", 2, ["Redis b"])
        assert "was never built" in caplog.text
        assert next(iter(result)).snippets["title"] == "<mark>Redis</mark> b"
        assert result.explain(1) == {}
        nothing = twin_search(page_index, "redis")
        assert (nothing.source, nothing.total, list(nothing)) == ("none", 0, [])

    def test_server_that_is_unavailable(self, index, kit, settings, twin_search, caplog):
        index.instance.rebuild()
        assert twin_search(index, "redis").source == "index"
        kit.connect({"URL": "redis://127.0.0.1:1"})
        assert twin_search(index, "redis").source == "database"
        assert "the fallback of each index answers" in caplog.text
        kit.options(SEARCH={"ON_FAILURE": "raise"})
        with pytest.raises(RedisUnavailable):
            twin_search(index, "redis")

    @pytest.mark.parametrize("part", ["docs:", "words:", ":redis", "stats:"])
    def test_keys_that_are_gone(self, index, kit, part, twin_search):
        index.instance.rebuild()
        assert twin_search(index, "other").total == 1
        (key,) = [key for key in kit.keys() if part in key]
        kit.client.delete(key)
        assert twin_search(index, "redis").source == "database"
        kit.options(SEARCH={"ON_FAILURE": "raise"})
        with pytest.raises(IndexMissing, match=r"Run: manage\.py rk_search rebuild app\.WithFallback"):
            twin_search(index, "redis")
        index.instance.rebuild()
        assert twin_search(index, "redis").total == 2

    def test_key_of_another_type(self, index, kit, twin_search):
        index.instance.rebuild()
        (key,) = [key for key in kit.keys() if "docs:" in key]
        kit.client.delete(key)
        kit.client.set(key, 1)
        assert twin_search(index, "redis").source == "database"

    def test_index_that_is_stored_with_other_fields(self, index, kit, twin_search):
        index.instance.rebuild()

        class WithFallback(SearchIndex):
            model = Page
            title = Text(weight=2)

        assert twin_search(WithFallback, "redis").source == "none"
        Page.objects.create(pk=next(NEW), title="Redis c")
        assert WithFallback.instance.rebuild() == 4
        assert twin_search(WithFallback, "redis").total == 3
        assert twin_search(index, "redis").source == "database"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"boost": {"votes": None}}, "must be a share from 0 to 1, not None"),
        ({"tag": "db"}, r"PageIndex has no Facet 'tag'. Did you mean 'tags'\?"),
        ({"order": "-vote"}, r"no Sort 'vote'. Did you mean 'votes'\?"),
        ({"order": "title"}, "There are: votes, published"),
        ({"facets": ("votes",)}, "no Facet 'votes'"),
        ({"boost": {"tags": 0.1}}, "no Sort 'tags'"),
        ({"boost": {"votes": 2}}, "must be a share from 0 to 1, not 2"),
        ({"boost": {"votes": 0.7, "published": 0.7}}, "are 1.4 together"),
        ({"limit": 0}, "limit must be a whole number from 1 to 1,000"),
        ({"offset": -1}, "offset must be"),
        ({"facets": "tags"}, "facets is a list of names, not 'tags'"),
        ({"boost": ["votes"]}, "A boost has shares by the names of Sorts, not"),
        ({"order": None}, "the name of a Sort, not None"),
    ],
)
def test_wrong_options_are_refused(page_index, options, message):
    with pytest.raises(InvalidValue, match=message):
        page_index.search(**options)


def test_wrong_declarations_are_refused(page_index):
    with pytest.raises(ConfigurationError, match="needs a field of the class Text"):
        type("Empty", (SearchIndex,), {"model": Page, "tags": Facet()})
    with pytest.raises(ConfigurationError, match="can't have a Facet 'order'"):
        type("Bad", (SearchIndex,), {"model": Page, "title": Text(), "order": Facet()})
    for wrong in (lambda: Text(weight=0), lambda: Sort(half_life=timedelta(days=1)), lambda: Sort(half_life=5)):
        with pytest.raises(ConfigurationError):
            wrong()


def test_fields_are_prepared_inherited_and_named_as_methods(kit, page_index):
    class Base(SearchIndex):
        stop_words = ("The", "a")
        stem = staticmethod(lambda word: word.rstrip("s"))
        name = Text("title")

    class Prepared(Base):
        model = Page
        search = Facet()

        def prepare_search(self, row):
            return row.title[:1]

        def rows(self):
            return super().rows().exclude(title="hidden")

    Prepared.instance.rebuild()
    for title in ("The Locks", "hidden", "Semaphores"):
        Page.objects.create(pk=next(NEW), title=title)
    assert Prepared.search("the").ids == Prepared.search("hidden").ids == []
    result = Prepared.search("lock", facets=("search",))
    assert (result.total, result.facets["search"]) == (1, {"T": 1})
    assert next(iter(result)).snippets["name"] == "The <mark>Locks</mark>"
    assert Prepared.instance.name == "app.Prepared"


def test_row_that_code_of_the_project_refuses_keeps_its_document(kit, page_index, caplog):
    class Fragile(SearchIndex):
        model = Page
        title = Text()

        def prepare_title(self, row):
            return row.title if row.votes < 10 else 1 // 0

    Fragile.instance.rebuild()
    good, bad = Page.objects.create(pk=next(NEW), title="good"), Page.objects.create(pk=next(NEW), title="bad")
    bad.votes = 10
    bad.save()
    good.title = "better"
    good.save()
    assert Fragile.search("bad").ids == [bad.pk]
    assert Fragile.search("better").ids == [good.pk]
    assert "can't take the row" in caplog.text


def test_changes_go_through_a_task(pages, kit, monkeypatch):
    names = []
    monkeypatch.setattr("tests.search.test_index.task", type("Task", (), {"enqueue": names.append}), raising=False)
    kit.options(SEARCH={"TASK": "tests.search.test_index.task"})
    Page.objects.create(pk=next(NEW), title="later")
    assert pages.search("later").total == 0
    assert names == ["app.PageIndex"]
    refresh(*names)
    assert pages.search("later").total == 1


@pytest.mark.parametrize("path", ["tests.search.test_index.nothing", "collections.OrderedDict"])
def test_save_goes_on_and_a_thread_writes_if_the_task_is_missing(pages, kit, caplog, path):
    kit.options(SEARCH={"TASK": path})
    Page.objects.create(pk=next(NEW), title="now")
    assert pages.search("now").total == 1
    assert f"the task {path} was not enqueued" in caplog.text


def test_thousand_hits_are_read_in_their_order(kit, page_index):
    Page.objects.bulk_create([Page(title="a", votes=number) for number in range(1100)])
    page_index.instance.rebuild()
    rows = page_index.search("a", order="votes", limit=1000).to_queryset()
    assert [row.votes for row in rows] == list(range(1000))


def test_keys_that_are_no_numbers(kit, page_index):
    class DeviceIndex(SearchIndex):
        model = Device
        label = Text("id")

    DeviceIndex.instance.rebuild()
    device = Device.objects.create()
    result = DeviceIndex.search(str(device.id))
    assert result.ids == [device.pk]
    assert next(iter(result)).row == device


def test_each_connection_has_an_index_of_its_own(three, kit, debian_redis):
    kit.options(
        SEARCH={"USING": "other"},
        CONNECTIONS={**kit.settings.REDIS_KIT["CONNECTIONS"], "other": debian_redis.connection},
    )
    assert three.search("redis").source == "none"
    Page.objects.all().delete()
    kit.options(SEARCH={"USING": "default"})
    assert three.search("redis").total == 2  # as nothing has told that index


def test_slow_and_empty_queries_are_listed(three, monkeypatch, caplog):
    monkeypatch.setattr(engine, "SLOW", 0.0)
    three.search("password=geheim \x1b[31m" + "x" * 300)
    monkeypatch.setattr(engine, "SLOW", 9.0)
    three.search("redis")
    three.search('- ""')  # has no word to be found
    info = three.instance.info()
    assert [text[:22] for _time, text in info.empty_queries] == ["password=*** \\x1b[31mx"]
    ((_time, slow),) = info.slow_queries
    assert re.fullmatch(r"\d+ password=\*\*\* .{67}", slow)
    assert (info.searches, info.empty, info.slow) == (3, 1, 1)


def test_custom_analyzer_splits(kit, page_index):
    class Letters(Analyzer):
        def split(self, text):
            return list(text.lower().replace(" ", ""))

    class LetterIndex(SearchIndex):
        model = Page
        analyzer_class = Letters
        title = Text()

    LetterIndex.instance.rebuild()
    Page.objects.create(pk=next(NEW), title="ab c")
    assert LetterIndex.search("+c").total == 1
