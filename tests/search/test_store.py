"""Writes to the generations of an index: who may write, what is refused, and what is deleted."""

import pytest

from redis_kit.core import connections
from redis_kit.core.errors import OutOfMemory, RebuildLost
from redis_kit.core.indexes.generations import Generation
from redis_kit.core.indexes.row_index import WriterLost
from redis_kit.search import store as module
from redis_kit.search.store import SearchStore
from tests.app.models import Page


@pytest.fixture
def index(pages, kit):
    """The object that follows the pages, with a writer."""
    connections.client().call("SET", pages.instance.writer_key, "w")
    return pages.instance


def write(index, title, pk="1", writer="w", rebuild=""):
    index.write({pk: index.document(Page(title=title))}, [], writer, rebuild)


def test_other_writer_changes_nothing(index, kit):
    write(index, "a")
    before = {key: kit.client.type(key) for key in kit.keys()}
    with pytest.raises(WriterLost, match=r"Another process writes to <SearchStore 'app\.PageIndex'>"):
        write(index, "b", writer="other")
    assert {key: kit.client.type(key) for key in kit.keys()} == before


def test_rebuild_that_was_cleared_is_lost(index):
    with pytest.raises(RebuildLost):
        write(index, "a", rebuild=Generation.new().id)


def test_repeat_and_equal_document_change_nothing(index, trips):
    write(index, "a b")
    trips.clear()
    write(index, "a b")
    assert len(trips) == 2  # the shape, and the records
    assert type(index).search("a").total == 1


def test_both_generations_get_a_change_though_one_is_not_known_here(index, monkeypatch):
    write(index, "a")
    known = index.generations.shape
    token = Generation.new().id
    index.store.run_flow(index.generations.start(token))
    write(index, "a", rebuild=token)
    index.generations.learn(None, str(known).encode())
    write(index, "b")
    index.store.run_flow(index.generations.switch(token))
    assert [type(index).search(word).total for word in "ab"] == [0, 1]


def test_record_that_changed_since_it_was_read_is_read_again(index, kit, monkeypatch):
    write(index, "a b")
    docs = next(key for key in kit.keys() if ":docs:" in key)
    original = module.STORE

    def racing(keys, args):
        monkeypatch.setattr(module, "STORE", original)
        write(index, "c")  # a delayed call of the same process
        return original(keys, args)

    monkeypatch.setattr(module, "STORE", racing)
    write(index, "a d")
    assert [type(index).search(word).total for word in "abcd"] == [1, 0, 0, 1]
    assert kit.client.hlen(docs) == 1
    assert {key.rpartition(":")[2] for key in kit.keys() if key.rpartition(":")[2] in {"b", "c"}} == set()


def test_index_that_was_never_built_takes_no_documents(kit, page_index):
    Page.objects.create(title="a")
    assert [key for key in kit.keys() if "docs" in key] == []
    assert page_index.instance.info() is None


def test_keys_of_a_rebuild_that_was_killed_are_deleted(index, kit, monkeypatch):
    token = Generation.new().id
    index.store.run_flow(index.generations.start(token))
    connections.client().call("DEL", index.generations.lease)
    for number in range(3):
        write(index, f"word{number} other{number}", pk=str(number), rebuild=token)
    connections.client().call("DEL", index.writer_key)
    monkeypatch.setattr(module, "CLEANED", 2)
    index.rebuild()
    assert [key for key in kit.keys() if token in key] == []


def test_large_documents_are_written_in_parts(index, trips):
    documents = {str(n): index.document(Page(title=" ".join(f"w{n}x{m}" for m in range(3000)))) for n in range(4)}
    trips.clear()
    index.write(documents, [], "w")
    assert len(trips) == 1 + 2 * 4
    assert type(index).search("w3x2999").total == 1
    index.write({}, list(documents), "w")
    assert index.info().documents == index.info().words == 0


def test_full_server_is_told_and_searches_fall_back(own_kit, page_index, caplog):
    page_index.instance.rebuild()
    client = connections.client()
    client.call("SET", page_index.instance.writer_key, "w")
    client.call("CONFIG", "SET", "maxmemory", "1mb")
    with pytest.raises(OutOfMemory):
        write(page_index.instance, "a")
    assert page_index.search("a").source == "none"
    client.call("CONFIG", "SET", "maxmemory", "0")
    write(page_index.instance, "a")
    assert page_index.search("a").total == 1


def test_index_without_a_class_has_a_store(kit):
    assert SearchStore("any", using="default").key("state").endswith("{search:any}:state")
