"""The names of a filter's keys, all in one slot, and of the list of filters."""

from redis_kit.core import conf
from redis_kit.core.settings import KitSettings


def state(tag: str) -> str:
    """Return the hash with the parameters of a filter, the shape of its generations and the items of each layer."""
    return _key(tag, "state")


def lease(tag: str) -> str:
    """Return the token of a running rebuild, which expires."""
    return _key(tag, "lease")


def bits(tag: str, generation: str, layer: int, part: int) -> str:
    """Return a bitmap: the bits of a layer, or a part of 512 MB of them."""
    return _key(tag, f"bits:{generation}:{layer}:{part}")


def filters() -> str:
    """Return the sorted set of the names of all filters."""
    return _key("bloom", "filters")


def _key(tag: str, part: str) -> str:
    return f"{conf.section(KitSettings).PREFIX}:{{{tag}}}:{part}"
