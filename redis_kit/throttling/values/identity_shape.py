"""The shapes of identities: how the identities begin that a key makes, such as ``ip:``."""

from collections.abc import Iterable
from ipaddress import ip_address

from redis_kit.core.web.client_address import grouped

ADDRESS, USER = "ip:", "user:"
ADDRESSES = (ADDRESS, "ident:")  # kinds whose values may be addresses

#: For each part of an identity, how it may begin; an empty tuple for any text.
Shape = tuple[tuple[str, ...], ...]


def named(shapes: Iterable[Shape]) -> list[Shape]:
    """Return the shapes that say how an identity begins. A key that is a function alone may make anything."""
    return [shape for shape in shapes if any(shape)]


def has_any_text(shapes: Iterable[Shape]) -> bool:
    """Return whether a part of an identity may be any text."""
    return any(() in shape for shape in shapes)


def fits(identity: str, shapes: Iterable[Shape]) -> bool:
    """Return whether a key with one of these shapes may make the identity."""
    return any(
        len(parts) == len(shape) and all(map(_fits, parts, shape))
        for shape in shapes
        for parts in [_parts(identity, shape)]
    )


def suggestion(identity: str, shapes: Iterable[Shape]) -> str:
    """Return the identity that was probably meant; empty text if nothing is likely."""
    candidates = []
    for shape in shapes:
        parts = _parts(identity, shape)
        completed = list(map(_completed, parts, shape)) if len(parts) == len(shape) else [""]
        if all(completed):
            candidates.append(" ".join(completed))
    likely = [each for each in candidates if each != identity]
    return min(likely, key=lambda each: not _is_address(identity) or ADDRESS not in each, default="")


def counted_by(shapes: Iterable[Shape]) -> str:
    """Return ``user`` or ``address`` if the identities of all shapes have one of them and not the other, else ""."""
    starts = {start for shape in shapes for part in shape for start in part}
    if (USER in starts) == (ADDRESS in starts):
        return ""
    return "user" if USER in starts else "address"


def _parts(identity: str, shape: Shape) -> list[str]:
    return identity.split(" ") if len(shape) > 1 else [identity]


def _fits(part: str, starts: tuple[str, ...]) -> bool:
    if not starts:
        return True
    start = next((start for start in starts if part.startswith(start)), None)
    return start is not None and (start != ADDRESS or _grouped(part.removeprefix(start)) == part.removeprefix(start))


def _completed(part: str, starts: tuple[str, ...]) -> str:
    """Return a part with the kind that it probably has; empty text for an address or a user in place of the other."""
    if _fits(part, starts):
        return part
    address = part.removeprefix(ADDRESS)
    if _is_address(address) and ADDRESS in starts:
        return f"{ADDRESS}{_grouped(address)}"
    kinds = [start for start in starts if start.endswith(":")]
    if kinds == [USER if _is_address(address) else ADDRESS]:
        return ""
    if ":" in part and not _is_address(part):
        part = part.partition(":")[2]
    values = ADDRESSES if _is_address(part) else (USER,)
    return f"{next((kind for kind in kinds if kind in values), kinds[0])}{part}"


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _grouped(text: str) -> str:
    return grouped(ip_address(text)) if _is_address(text) else text
