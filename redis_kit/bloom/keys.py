"""The names of a filter's bitmaps. Its other keys are those of each index."""

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


def bits(tag: str, generation: str, layer: int, part: int) -> str:
    """Return a bitmap: the bits of a layer, or a part of 512 MB of them."""
    return f"{conf.section(KitSettings).PREFIX}:{{{tag}}}:bits:{generation}:{layer}:{part}"
