"""Names in six scripts."""

import random
from collections.abc import Iterator

SCRIPTS = [
    syllables.split()
    for syllables in (
        "an be chi do el fri ga ho il ka lu mi no ol pe ri sa tu vo zö",
        "王 李 张 刘 陈 杨 小 明 伟 芳 娜 敏 静 丽 强 磊",
        "مح مد ام ين سا رة خا لد نو را",
        "דו יד שר ה יו סף מש אב רה",
        "สม ชาย สุ ดา มา ลี วิ ชัย",
        "😀 🎉 🚀 🐍 ❤ 🌍",
    )
]


def name(rng: random.Random) -> str:
    """Return a name of two words. Half of them have one that begins with an "a"."""
    syllables = rng.choice(SCRIPTS)
    first, last = ("".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(2))
    return f"a{first} {last}" if rng.random() < 0.5 else f"{first} {last}"


def entries(count: int, seed: int = 1) -> Iterator[tuple[int, str, int]]:
    """Yield ids, names and weights up to 1,000: half of them weigh 1, a quarter 2 or 3, and so on."""
    rng = random.Random(seed)
    for id in range(count):
        yield id, name(rng), min(1000, int(rng.paretovariate(1)))
