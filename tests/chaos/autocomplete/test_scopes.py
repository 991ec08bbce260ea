"""No text that is typed shows an entry of another scope; the program that says so finds an index that leaks."""

from redis_kit.autocomplete import Autocomplete
from tests.chaos.autocomplete import scopes


def test_no_text_shows_another_scope(kit, monkeypatch):
    monkeypatch.setattr(scopes, "SCOPES", 20)
    found, leaks = scopes.type_texts(1500, 7)
    assert leaks == []
    assert found > 300


def test_program_finds_an_index_that_leaks(kit, monkeypatch):
    monkeypatch.setattr(scopes, "SCOPES", 5)
    look_up = Autocomplete.look_up

    def leaking(self, text, limit, **options):
        self.scope = "1"
        return look_up(self, text, limit, **options)

    monkeypatch.setattr(Autocomplete, "look_up", leaking)
    assert scopes.type_texts(200, 7)[1]
