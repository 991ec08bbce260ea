"""The names of the keys that features of the queues have, as their ``_keys.lua`` list them."""

import re

from tests.queues.support.without import FEATURES

NAME = re.compile(r"^-- (\w+) +(?:string|list|hash|zset|stream)\b", re.MULTILINE)


def names(*, missing=()):
    """Return the names, but not those of some features."""
    files = [path for path in FEATURES.glob("*/scripts/_keys.lua") if path.parents[1].name not in missing]
    return {name for path in files for name in NAME.findall(path.read_text())}
