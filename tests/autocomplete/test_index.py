"""An index against a plain list, its scopes, its weights, its generations and its errors."""

import copy
import pickle
import random
import time
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from redis_kit.autocomplete import Autocomplete, Entry
from redis_kit.core import connections
from redis_kit.core.errors import (
    ConfigurationError,
    InvalidName,
    InvalidValue,
    KeyConflict,
    ParameterMismatch,
    RebuildLost,
    RebuildRunning,
    RedisUnavailable,
)
from tests.autocomplete.support.reference import Reference

SYLLABLES = ("an", "a", "ba", "Zö", "小", "明", "مح", "דו", "สม", "🎉", "ß", "É")
WORDS = st.lists(st.sampled_from(SYLLABLES), min_size=1, max_size=3).map("".join)
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
IDS = st.integers(0, 12)
NAMES = ["Anna Schmidt", "Zoë Müller-Lüdenscheidt", "王小明", "محمد أمين", "דוד כהן", "สมชาย ใจดี", "👩‍💻 Ada", "O'Neil"]


def found(hits):
    return [(hit.id, hit.text) for hit in hits]


def terms(kit):
    (key,) = [key for key in kit.keys() if ":terms:" in key]
    blocks = kit.raw.zrange(key, 0, -1)
    return [term for block in blocks for term in block.split(b"\1")[1:]]


def test_entries_are_found_by_each_word_in_any_order(any_kit, twin):
    people = Autocomplete("people")
    assert twin(people.search, "an") == []
    assert twin(people.add, 1, "Anna Schmidt", 0, {"email": "anna@example.org"}) is True
    assert twin(people.add, 1, "Anna Schmidt", 0, {"email": "anna@example.org"}) is False
    assert twin(people.add_many, [(2, "Hanna Schmid"), Entry(3, "Schmidtke, Anja", 5)]) == 2
    assert [hit.id for hit in twin(people.search, "schmi")] == ["3", "2", "1"]
    (hit,) = twin(people.search, "SCHMIDT anna")
    assert (hit.id, hit.payload, hit.spans) == ("1", {"email": "anna@example.org"}, ((0, 4), (5, 12)))
    assert twin(people.search, "anna anna") == []
    assert [hit.id for hit in twin(people.search, "", 2)] == ["3", "1"]
    assert twin(people.use, 2) is True
    assert [hit.id for hit in twin(people.search, "schmi")] == ["3", "2", "1"]
    assert twin(people.use, 9) is False
    info = twin(people.info)
    assert (info.entries, info.scopes, info.complete) == (3, 1, False)
    assert twin(people.remove, 1) is True
    assert twin(people.remove, 1) is False
    assert twin(people.remove_many, [2, 3, 4]) == 2
    assert twin(people.rebuild, [(7, "Jo")]) == 1
    assert found(twin(people.search, "j")) == [("7", "Jo")]
    assert twin(people.info).complete
    assert twin(people.clear) is True
    assert twin(people.clear) is False
    assert twin(people.info) is None


@pytest.mark.parametrize("name", NAMES)
def test_each_script_is_found_by_each_beginning(kit, name):
    people = Autocomplete("scripts")
    people.add_many(enumerate(NAMES))
    for word in name.split():
        for end in range(1, len(word) + 1):
            assert name in [hit.text for hit in people.search(word[:end])], word[:end]


@hypothesis(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), IDS, TEXTS, st.sampled_from([0, 0, 1, 3, 900])),
            st.tuples(st.just("remove"), IDS),
            st.tuples(st.just("rebuild"), st.lists(st.tuples(IDS, TEXTS), max_size=12, unique_by=lambda each: each[0])),
        ),
        max_size=30,
    ),
    queries=st.lists(st.lists(WORDS, max_size=2).map(" ".join), min_size=3, max_size=3),
)
def test_searches_answer_as_a_plain_list_does(kit, steps, queries):
    index, plain = Autocomplete("model"), Reference()
    index.clear()
    for step, *values in steps:
        if step == "add":
            index.add(*values)
            plain.add(*values)
        elif step == "remove":
            index.remove(*values)
            plain.remove(*values)
        else:
            index.rebuild(values[0])
            plain.entries.clear()
            for entry in values[0]:
                plain.add(*entry)
    for query in queries:
        for limit in (1, 3, 100):
            assert found(index.search(query, limit)) == plain.search(query, limit)


def test_blocks_of_terms_stay_sorted_and_whole(kit):
    rng, index, plain = random.Random(5), Autocomplete("blocks"), Reference()
    for id in range(300):
        text = " ".join(rng.choices(SYLLABLES, k=rng.randint(1, 3)))
        index.add(id, text)
        plain.add(id, text)
    for id in rng.sample(range(300), 150):
        index.remove(id)
        plain.remove(id)
    assert terms(kit) == sorted(set(terms(kit)))
    for query in ("a", "", "an", "z", "a b", "小", "a a"):
        assert found(index.search(query, 100)) == plain.search(query, 100)
    index.clear()
    assert not [key for key in kit.keys() if ":terms:" in key or ":entries:" in key]


TYPED = st.one_of(
    st.text(max_size=70),
    st.text(st.characters(categories=["Cs", "Cc", "Cf"]), max_size=5),
    st.sampled_from(["", "*", "[", "(", "-", "+", "\\", "\xff", "\0", "\1", "\2", "{}", "11", "11\xfd", "b\2secret"]),
    st.sampled_from(["rk:{autocomplete:tenants}:terms:", "\ud800", "%00", "S", "secret", "3\0", "\x12\xfdsecret"]),
)


@pytest.fixture
def tenants(kit):
    """Two scopes with the same ids."""
    own, other = Autocomplete("tenants", "a"), Autocomplete("tenants", "b")
    for id, text in enumerate(["secret", "Secret plan", "*", "11", "\2secret", "a\0b"]):
        own.add(id, f"mine {text}")
        other.add(id, f"secret {text}")
    return own


@hypothesis(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(typed=TYPED)
@example("sec")
def test_no_text_reaches_another_scope(kit, tenants, typed):
    assert all(hit.text.startswith("mine") for hit in tenants.search(typed, 100))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])  # noqa: S301
def test_copy_of_an_index_is_the_same_index(kit, copied):
    copied(Autocomplete("names", "de")).add(1, "Anna")
    assert [hit.id for hit in Autocomplete("names", "de").search("an")] == ["1"]


def test_an_id_is_in_each_scope_or_in_one_only(kit):
    for scope in (1, "b", UUID(int=1)):
        Autocomplete("many", scope).add(7, f"Text {scope}")
        assert found(Autocomplete("many", scope).search("t")) == [("7", f"Text {scope}")]
    assert Autocomplete("many").info().entries == 3
    assert Autocomplete("many", "b").clear() is True
    assert Autocomplete("many").info().entries == 2
    Autocomplete("one", 1, unique_ids=True).add(7, "Text")
    Autocomplete("one", 2, unique_ids=True).add(7, "Text")
    assert Autocomplete("one", 1, unique_ids=True).search("t") == []
    assert len(Autocomplete("one", 2, unique_ids=True).search("t")) == 1
    with pytest.raises(ParameterMismatch, match=r"unique_ids=True, and the code has unique_ids=False"):
        Autocomplete("one").search("t")


def test_an_id_in_another_scope_is_not_removed(kit):
    own, other = (Autocomplete("one", scope, unique_ids=True) for scope in (1, 2))
    own.add(7, "Text")
    assert other.remove(7) is False
    assert other.clear() is False
    assert len(own.search("t")) == 1
    assert Autocomplete("one", unique_ids=True).remove(7) is True  # that of all scopes may


def test_long_searches_go_on_where_they_ended(kit, monkeypatch):
    """As a plain list answers: short and long words, several levels, and words that are rarely in one entry."""
    rng, index, plain = random.Random(6), Autocomplete("long"), Reference()
    monkeypatch.setattr("redis_kit.autocomplete.index.BLOCKS", 1)
    monkeypatch.setattr("redis_kit.autocomplete.index.CALLS", 500)
    entries = [
        (id, " ".join("".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3))), 2**weight)
        for id, weight in enumerate(rng.choices((0, 1, 2, 9), (60, 20, 10, 2), k=900))
    ]
    index.add_many(entries)
    for entry in entries:
        plain.add(*entry)
    for _ in range(50):
        query = " ".join("".join(rng.choices("abc", k=rng.randint(1, 3))) for _ in range(rng.randint(1, 3)))
        for limit in (1, 10, 100):
            assert found(index.search(query, limit)) == plain.search(query, limit), query


def test_entries_of_a_rebuild_name_their_scopes(kit):
    index = Autocomplete("scopes")
    index.rebuild([Entry(1, "Anna"), Entry(1, "Anna", scope="b"), Entry(2, "Anton", scope="b")])
    assert len(index.search("an")) == 1
    assert len(Autocomplete("scopes", "b").search("an")) == 2
    with pytest.raises(InvalidValue, match="all scopes"):
        Autocomplete("scopes", "b").rebuild([])
    with pytest.raises(InvalidValue, match="This is the scope b"):
        Autocomplete("scopes", "b").add_many([Entry(1, "Anna", scope="c")])


def test_uses_outweigh_older_ones_and_survive_a_rebuild(kit, monkeypatch):
    index = Autocomplete("uses")
    entries = [(1, "Anna", 8), (2, "Anton"), (3, "Anders")]
    index.add_many(entries)
    for _ in range(3):
        index.use(2)
    index.use(3)
    assert [hit.id for hit in index.search("an")] == ["1", "2", "3"]
    index.rebuild(entries)
    assert [hit.id for hit in index.search("an")] == ["1", "2", "3"]
    index.add(2, "Antonia")
    assert [hit.id for hit in index.search("an")] == ["1", "2", "3"]
    (state,) = [key for key in kit.keys() if key.endswith(":state")]
    (since,) = [field for field in kit.client.hkeys(state) if field.startswith("since:")]
    kit.client.hincrby(state, since, -120 * 86_400_000)  # four half-lives ago
    index.use(3)
    assert [hit.id for hit in index.search("an")] == ["3", "1", "2"]
    index.rebuild(entries)
    assert [hit.id for hit in index.search("an")] == ["1", "3", "2"]


def test_writes_during_a_rebuild_are_not_lost(kit):
    index = Autocomplete("busy")
    index.add_many([(1, "Anna"), (2, "Anton")])

    def entries():
        yield 1, "Anna"
        index.use(1)
        index.add(3, "Andrea")
        index.remove(2)
        yield from ((id, f"Other {id}") for id in range(100, 200))
        assert len(index.search("an")) == 2

    assert index.rebuild(entries()) == 101
    assert [hit.id for hit in index.search("an")] == ["1", "3"]
    with pytest.raises(RebuildRunning):
        index.rebuild(Autocomplete("busy").rebuild([each]) for each in [(1, "x")] * 2)
    assert [hit.id for hit in index.search("an")] == ["1", "3"]


def test_failed_rebuild_changes_nothing(kit):
    index = Autocomplete("fails")
    index.add(1, "Anna")
    before = kit.keys()
    with pytest.raises(ZeroDivisionError):
        index.rebuild((id, "Bo") for id in (1, 1 // 0))
    assert kit.keys() == before
    assert len(index.search("an")) == 1

    def entries():
        yield 1, "x"
        index.clear()

    with pytest.raises(RebuildLost):
        index.rebuild(entries())


def test_search_is_one_round_trip_that_writes_nothing(kit, trips):
    index = Autocomplete("trips")
    index.add_many((id, f"An Other {id}") for id in range(120))
    index.search("an")
    with kit.client.monitor() as monitor:
        trips.clear()
        index.search("ot", 100)
        index.search("an oth", 100)
        index.search("")
        assert len(trips) == 3
        kit.client.echo("end")
        commands = set()
        for command in monitor.listen():
            if command["command"].startswith("ECHO"):
                break
            commands.add(command["command"].split()[0].upper())
    connecting = {"CLIENT", "HELLO", "SELECT"}  # of the plain client
    assert commands - connecting == {"EVALSHA", "HMGET", "HGET", "ZREVRANGEBYLEX", "ZRANGEBYLEX"}


def test_rare_pair_of_common_words_is_found_in_several_calls(kit, trips):
    index = Autocomplete("pairs")
    index.add_many([*((id, f"aaa{id} c") for id in range(3000)), (3000, "zzz aaz")])
    trips.clear()
    assert [hit.id for hit in index.search("aa z")] == ["3000"]
    assert 2 < len(trips) < 8


def test_texts_come_back_as_they_were(kit):
    index = Autocomplete("back")
    texts = [
        "a\0\1\2\3\x1a\x1b\x1f",
        "\ud800x",
        "{rk}:*",
        "a\r\nb",
        "\xff\xfe",
        "  a  ",
        "\u202eabc",
        "...",
        "a" * 1000,
    ]
    payloads = ["\1\2", {"\0": ["\ud800", None, 1.5, "ä"]}, "", 0, False, [], "x" * 1022, 1, 2]
    index.add_many((id, text, id, payload) for id, (text, payload) in enumerate(zip(texts, payloads, strict=True)))
    hits = {hit.id: (hit.text, hit.payload) for hit in index.search("", 100)}
    assert hits == {str(id): pair for id, pair in enumerate(zip(texts, payloads, strict=True))}
    assert [hit.text for hit in index.search("..")] == ["..."]


@pytest.mark.parametrize("id", ["", "a\0", "\x7f", "\ud800", "x" * 129, None, 1.0, True, b"a", ["a"]])
def test_other_ids_and_scopes_are_refused(kit, id):
    with pytest.raises(InvalidValue, match="The id of an entry must be an int, a UUID"):
        Autocomplete("wrong").add(id, "Anna")
    if id is not None:
        with pytest.raises(InvalidValue, match="The scope of an entry"):
            Autocomplete("wrong", id)
    assert kit.keys() == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ((1, ""), "1 to 1,000 characters"),
        ((1, "x" * 1001), "not one of 1,001"),
        ((1, None), "1 to 1,000 characters, not None"),
        ((1, "a", -1), "weight must be"),
        ((1, "a", 1e13), "weight must be"),
        ((1, "a", float("nan")), "weight must be"),
        ((1, "a", "7"), "weight must be"),
        ((1, "a", 0, object()), "can't be written as JSON"),
        ((1, "a", 0, "x" * 7000), "7,008 characters"),
        ((1,), "An entry has an id, a text"),
        ("ab", "An entry has an id, a text"),
        (None, "An entry has an id, a text"),
        ({"id": 1, "text": "a"}, "An entry has an id, a text"),
        ((1, "a", 0, None, None, 0), "An entry has an id, a text"),
    ],
)
def test_wrong_entries_are_refused(kit, entry, message):
    with pytest.raises(InvalidValue, match=message):
        Autocomplete("wrong").add_many([entry])
    assert kit.keys() == []


def test_wrong_calls_are_refused(kit):
    with pytest.raises(InvalidName):
        Autocomplete("")
    with pytest.raises(TypeError, match="scope"):
        Autocomplete("people", scpe=1)
    index = Autocomplete("people")
    for limit in (0, -1, 101, 10**6, "10", True):
        with pytest.raises(InvalidValue, match="limit must be a whole number from 1 to 100"):
            index.search("a", limit)
    with pytest.raises(InvalidValue, match="must be a str, not None"):
        index.search(None)
    for call in (index.add_many, index.remove_many, index.rebuild):
        with pytest.raises(InvalidValue, match="Give a list of values, not 'ab'"):
            call("ab")


def test_long_queries_and_texts_are_cut(kit):
    index = Autocomplete("long")
    index.add(1, " ".join(f"w{number}" for number in range(200)))
    index.add(2, "x" * 1000)
    assert len(index.search("x" * 10_000_000)) == 1
    assert len(index.search("w10")) == 1
    assert index.search("w150") == []


def test_key_of_another_type_is_named_and_nothing_is_changed(kit):
    index = Autocomplete("types")
    index.add(1, "Anna")
    (key,) = [key for key in kit.keys() if ":terms:" in key]
    kit.client.delete(key)
    kit.client.set(key, "x")
    with pytest.raises(KeyConflict):
        index.add(2, "Anton")
    (entries,) = [key for key in kit.keys() if ":entries:" in key]
    assert kit.client.hkeys(entries) == ["1"]


def test_evicted_records_are_left_out_and_end_completeness(kit):
    index = Autocomplete("evicted")
    index.rebuild([(1, "Anna")])
    assert index.info().complete
    kit.client.delete(*[key for key in kit.keys() if ":entries:" in key])
    assert index.search("an") == []
    index.add(2, "Anton")
    assert not index.info().complete
    assert found(index.search("an")) == [("2", "Anton")]


def test_nothing_is_found_while_redis_is_unavailable(own_kit):
    index = Autocomplete("down")
    index.add(1, "Anna")
    own_kit.server.stop()
    assert index.search("an") == []
    with pytest.raises(RedisUnavailable):
        index.add(2, "Anton")
    own_kit.options(AUTOCOMPLETE={"ON_FAILURE": "raise"})
    with pytest.raises(RedisUnavailable):
        index.search("an")


def test_two_connections_may_have_the_same_name(kit, settings):
    kit.options(CONNECTIONS={**settings.REDIS_KIT["CONNECTIONS"], "other": {"URL": f"{kit.url.removesuffix('0')}1"}})
    Autocomplete("same").add(1, "Anna")
    assert Autocomplete("same", using="other").search("an") == []
    Autocomplete("same", using="other").add(1, "Anders")
    assert found(Autocomplete("same").search("an")) == [("1", "Anna")]
    connections.close()


def test_further_spellings_find_the_text(kit):
    kit.options(AUTOCOMPLETE={"SPELLINGS": "redis_kit.autocomplete.pinyin.spellings"})
    index = Autocomplete("pinyin")
    index.add_many([(1, "王小明"), (2, "Anna")])
    for query in ("wang", "xiao", "wangxiaom", "wxm", "ming w", "王小"):
        assert [hit.id for hit in index.search(query)] == ["1"], query
    assert index.search("wang")[0].spans == ()
    kit.options(AUTOCOMPLETE={})
    index.remove(1)
    assert index.search("wang") == []


@pytest.mark.parametrize("path", ["redis_kit.autocomplete.pinyin.speling", "os.sep"])
def test_function_of_spellings_that_does_not_exist_is_named(kit, path):
    kit.options(AUTOCOMPLETE={"SPELLINGS": path})
    with pytest.raises(ConfigurationError, match=r"'SPELLINGS'\] is '.*Name a function that takes a text"):
        Autocomplete("people").add(1, "Anna")


def test_time_of_a_write_is_that_of_the_server(kit, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0)
    Autocomplete("clock").add(1, "Anna")
    assert Autocomplete("clock").use(1)
