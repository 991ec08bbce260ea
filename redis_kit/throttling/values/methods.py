"""The methods of requests that a throttle counts."""

from collections.abc import Iterable

from redis_kit.core.errors import InvalidValue

METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})


def methods_of(given: str | Iterable[str] | None) -> frozenset[str] | None:
    """Return methods in capital letters; None stands for all of them. GET includes HEAD. Raises InvalidValue."""
    if given is None:
        return None
    methods = frozenset(str(method).upper() for method in ([given] if isinstance(given, str) else given))
    if unknown := sorted(methods - METHODS):
        raise InvalidValue(f"methods contains {', '.join(unknown)}; a method is one of {', '.join(sorted(METHODS))}.")
    if not methods:
        raise InvalidValue("methods is empty, so nothing would be limited; omit it to limit every method.")
    # Django runs the same view for both.
    return methods | {"HEAD"} if "GET" in methods else methods
