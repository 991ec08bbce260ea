"""System checks of page views: what the middleware and the beacon need in ``MIDDLEWARE`` and ``urlpatterns``."""

from collections.abc import Iterable, Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.web.page_marks import UNMARKED, PageMark, mark_of
from redis_kit.pageviews.beacon import INCLUDE, ROUTE
from redis_kit.pageviews.settings import PageViewSettings

OURS = "redis_kit.pageviews.middleware.PageViewMiddleware"
# Middleware that answers without the rest: ours must see what it answers.
CHANGING = (
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
)
NEEDED = {
    "session": "sessions.middleware.SessionMiddleware",
    "user": "auth.middleware.AuthenticationMiddleware",
}


def messages() -> Iterator[CheckMessage]:
    """Yield what is wrong. Loads the URLs of the site."""
    place = next((place for place, path in enumerate(settings.MIDDLEWARE) if _is_ours(path)), None)
    has_beacon = _has_beacon()
    if place is not None:
        yield from _wrong_place(settings.MIDDLEWARE[:place])
    if place is not None or has_beacon:
        yield from _missing_middleware()
    if has_beacon is False:
        yield from _uncounted(dict(_marked(get_resolver().url_patterns)), has_middleware=place is not None)


def _uncounted(marked: dict[str, PageMark], *, has_middleware: bool) -> Iterator[CheckMessage]:
    reported = [path for path, mark in marked.items() if mark.beacon]
    named = [path for path, mark in marked.items() if mark.name is not None]
    if reported:
        yield Warning(
            f"The beacon counts the views of {_listed(reported)}, but no URL leads to it.",
            hint=INCLUDE,
            id="redis_kit.W025",
        )
    elif named and not has_middleware:
        yield Warning(
            f"Nothing counts the views of {_listed(named)}: MIDDLEWARE has no PageViewMiddleware.",
            hint=f"Put {OURS!r} first in MIDDLEWARE.",
            id="redis_kit.W023",
        )


def _wrong_place(before: list[str]) -> Iterator[CheckMessage]:
    for path in before:
        if path in CHANGING:
            other = path.rpartition(".")[2]
            yield Warning(
                f"PageViewMiddleware comes after {other} in MIDDLEWARE, so it does not see what that answers.",
                hint="Put it first, or pages from the cache are not counted.",
                id="redis_kit.W024",
            )


def _missing_middleware() -> Iterator[CheckMessage]:
    options = conf.valid_options(PageViewSettings)
    for name in sorted({options.VISITOR, "user" if options.EXCLUDE_STAFF else ""} & NEEDED.keys()):
        if not any(path.endswith(NEEDED[name].rpartition(".")[2]) for path in settings.MIDDLEWARE):
            yield Warning(
                f"REDIS_KIT['PAGEVIEWS'] needs the {name} of a request, but MIDDLEWARE has no {NEEDED[name]}.",
                hint=f"Add 'django.contrib.{NEEDED[name]}'.",
                id="redis_kit.W020",
            )


def _is_ours(path: str) -> bool:
    if path == OURS or path.startswith("django."):
        return path == OURS
    try:
        made = import_string(path)
    except ImportError:  # Django reports it
        return False
    return getattr(made, "counts_page_views", False) is True


def _has_beacon() -> bool | None:
    """Return whether a URL leads to the beacon; None if the URLs can't be loaded, which Django reports."""
    try:
        reverse(ROUTE)
    except NoReverseMatch:
        return False
    except Exception:
        return None
    return True


def _marked(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[tuple[str, PageMark]]:
    """Yield the dotted path and the mark of each view with a mark to which a URL leads."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _marked(pattern.url_patterns)
        elif (mark := mark_of(pattern.callback)) is not UNMARKED:
            yield pattern.lookup_str, mark


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
