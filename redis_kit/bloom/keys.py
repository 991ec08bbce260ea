"""The names of a filter's bitmaps, and of the list of filters. Its state and lease are keys of the index."""

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


def bits(tag: str, generation: str, layer: int, part: int) -> str:
    """Return a bitmap: the bits of a layer, or a part of 512 MB of them."""
    return f"{conf.section(KitSettings).PREFIX}:{{{tag}}}:bits:{generation}:{layer}:{part}"


def filters() -> str:
    """Return the sorted set of the names of all filters."""
    return f"{conf.section(KitSettings).PREFIX}:{{bloom:filters}}:names"
