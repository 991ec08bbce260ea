"""Hostile texts typed into an index with many scopes: none may show an entry of another scope.

``python -m tests.chaos autocomplete.scopes 100000`` types that many texts.
"""

import random
from dataclasses import dataclass

from redis_kit.autocomplete import Autocomplete
from tests.chaos.engine import program
from tests.chaos.engine.program import Outcome
from tests.chaos.engine.stage import stage

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


@dataclass(frozen=True)
class Plan(program.Plan):
    """How many texts are typed."""

    count: int


def run(plan):
    """Type texts on a server of its own."""
    with stage(READ_TIMEOUT=5):
        found, leaks = type_texts(plan.count, plan.seed)
    wrong = {"of another scope": [ascii(text) for text in leaks], "empty": [] if found else ["no text found anything"]}
    return Outcome(f"{plan.count:,} texts in {SCOPES} scopes: {found:,} entries found", wrong)


def type_texts(count, seed):
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
