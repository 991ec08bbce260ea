"""Hostile texts typed into an index with many scopes: none may show an entry of another scope.

``python -m tests.chaos.autocomplete.scopes 100000 7`` types that many texts, with the seed 7, and prints how many found
something. The exit code is 1 if one showed another scope's entry.
"""

import random
import sys

from redis_kit.autocomplete import Autocomplete

NAME, SCOPES, ENTRIES = "tenants", 300, 20
WORDS = ("secret", "Anna", "Schmidt", "王小明", "محمد", "דוד", "สมชาย", "🎉", "Zoë", "11", "*", "a\0b", "\2x", "ﷺ")
PARTS = (
    *("\0", "\1", "\2", "\3", "\x1a", "\xfd", "\xfe", "\xff", "\ud800", "\udfff", "\U0010ffff", "\u200d", "\u202e"),
    *("{", "}", "[", "(", "-", "+", "*", "?", "^", "\\", "%00", "%", ":", " ", "\n", "\t", "\r\n", "ä", "İ", "ẞ", "ﬁ"),
    *(
        "rk:{autocomplete:tenants}:terms:",
        "rk:{autocomplete:tenants}:scopes",
        "tenants",
        "11",
        "22c",
        "1f",
        "0",
        "3fff",
    ),
)


def run(count, seed):
    """Type texts, and return how many entries were found, and the texts that showed another scope's."""
    dice, index = random.Random(seed), Autocomplete(NAME)
    index.clear()
    for scope in range(SCOPES):
        texts = [f"{dice.choice(WORDS)} {dice.choice(WORDS)} of {scope}" for _ in range(ENTRIES)]
        Autocomplete(NAME, scope).add_many((id, text, dice.choice((0, 1, 8)), scope) for id, text in enumerate(texts))
    found, leaks = 0, []
    for _ in range(count):
        scope, text = dice.randrange(SCOPES), typed(dice)
        hits = Autocomplete(NAME, scope).search(text, dice.choice((1, 10, 100)))
        found += len(hits)
        if any(hit.payload != scope or not hit.text.endswith(f" of {scope}") for hit in hits):
            leaks.append(text)
    return found, leaks


def typed(dice):
    """Return a text of words, hostile parts, random characters, and the beginnings of terms as they are stored."""
    kinds = (
        lambda: dice.choice(WORDS)[: dice.randint(1, 6)],
        lambda: dice.choice(PARTS),
        lambda: chr(dice.randrange(0x110000)),
        lambda: f"{len(f'{(number := dice.randrange(SCOPES)):x}')}{number:x}{chr(dice.randrange(200, 254))}",
    )
    return "".join(dice.choice(kinds)() for _ in range(dice.randint(0, 6)))


def main(arguments):
    """Run against a server of its own."""
    import django
    from django.conf import settings

    from redis_kit.core.embedded.server import EmbeddedServer

    count, seed = (int(text) for text in [*arguments, "7"][:2])
    with EmbeddedServer() as server:
        connections = {"default": {"URL": server.url}}
        settings.configure(REDIS_KIT={"CONNECTIONS": connections, "READ_TIMEOUT": 5}, INSTALLED_APPS=["redis_kit"])
        django.setup()
        found, leaks = run(count, seed)
    print(f"{count:,} texts in {SCOPES} scopes, seed {seed}: {found:,} entries found, {len(leaks)} of another scope")
    for text in leaks[:10]:
        print(ascii(text))
    return bool(leaks) or not found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
