"""The mark of a view that names its page. It is in the core, since the dashboard has views that are not pages."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

AnyView = TypeVar("AnyView", bound=Callable[..., Any])
_ATTRIBUTE = "redis_kit_page"


class PageMark(NamedTuple):
    """The page of a view, and whether the beacon counts it. Without a name it is the URL pattern."""

    name: Any = ...
    beacon: bool = False


UNMARKED = PageMark()


def marked(view: AnyView, mark: PageMark) -> AnyView:
    """Return the view with a mark."""
    setattr(view, _ATTRIBUTE, mark)
    return view


def mark_of(view: Callable[..., Any]) -> PageMark:
    """Return the mark of a view, or of its class."""
    return getattr(view, _ATTRIBUTE, getattr(getattr(view, "view_class", None), _ATTRIBUTE, UNMARKED))


def uncounted(view: AnyView) -> AnyView:
    """Mark a view whose answers are not counted as page views."""
    return marked(view, PageMark(None))
