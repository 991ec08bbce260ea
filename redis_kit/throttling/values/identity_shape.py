"""The shapes of identities: how the identities begin that a key makes, such as ``ip:``."""

from collections.abc import Callable, Iterable

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError

from redis_kit.core.web.client_address import INVALID, grouped, parse

ADDRESS, USER = "ip:", "user:"
ADDRESSES = (ADDRESS, "ident:")  # kinds whose values may be addresses
FORMS = {ADDRESS: "ip:<address>", USER: "user:<primary key>"}  # how a message names them

#: For each part of an identity, how it may begin; an empty tuple for any text.
Shape = tuple[tuple[str, ...], ...]


def _address(text: str) -> str:
    if text == INVALID:
        return text
    address = parse(text.removesuffix("/64"))
    return grouped(address) if address else ""


def _user(text: str) -> str:
    try:
        return str(get_user_model()._meta.pk.to_python(text)) if text else ""
    except (ValidationError, ValueError, TypeError):
        return ""
    except ImproperlyConfigured:  # the users of the requests are not Django's
        return text


#: For a kind, the function that spells a value as keys do; it returns empty text for a value that no key makes.
SPELLINGS: dict[str, Callable[[str], str]] = {ADDRESS: _address, USER: _user}


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
    return min(likely, key=lambda each: not _address(identity) or ADDRESS not in each, default="")


def counted_by(shapes: Iterable[Shape]) -> str:
    """Return ``user`` or ``address`` if the identities of all shapes have one of them and not the other, else ""."""
    starts = {start for shape in shapes for part in shape for start in part}
    if (USER in starts) == (ADDRESS in starts):
        return ""
    return "user" if USER in starts else "address"


def _parts(identity: str, shape: Shape) -> list[str]:
    return identity.split(" ") if len(shape) > 1 else [identity]


def _fits(part: str, starts: tuple[str, ...]) -> bool:
    return not starts or (part != "" and _spelled(part, starts) == part)


def _spelled(part: str, starts: tuple[str, ...]) -> str:
    """Return a part as keys spell it; empty text if no key makes it."""
    start = next((start for start in starts if part.startswith(start)), None)
    if start is None or start not in SPELLINGS:
        return part if start else ""
    value = SPELLINGS[start](part.removeprefix(start))
    return f"{start}{value}" if value else ""


def _completed(part: str, starts: tuple[str, ...]) -> str:
    """Return a part with the kind that it probably has; empty text for an address or a user in place of the other."""
    if not starts:
        return part
    if spelled := _spelled(part, starts):
        return spelled
    address = _address(part.removeprefix(ADDRESS))
    if address and ADDRESS in starts:
        return f"{ADDRESS}{address}"
    kinds = [start for start in starts if start.endswith(":")]
    if kinds == [USER if address else ADDRESS]:
        return ""
    if ":" in part and not _address(part):
        part = part.partition(":")[2]
    values = ADDRESSES if _address(part) else (USER,)
    return _spelled(f"{next((kind for kind in kinds if kind in values), kinds[0])}{part}", starts)
