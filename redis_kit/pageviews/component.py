"""Page views as a component."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from redis_kit.core import conf
from redis_kit.core.component import Component
from redis_kit.pageviews.settings import PageViewSettings


class PageViews(Component):
    """Views and unique visitors of pages."""

    settings = PageViewSettings
    panels = ("redis_kit.pageviews.dashboard.panel.PageViewsPanel",)

    def forget(self) -> None:
        """Drop the views that wait to be counted."""
        from redis_kit.pageviews.buffer import buffer

        # Not on a change of REDIS_KIT: a test may count views after the block of override_settings() that made them.
        buffer.discard()

    def checks(self) -> Iterator[CheckMessage]:
        """Yield a warning if the visitor's identity needs a middleware that is not installed."""
        if "redis_kit.pageviews.middleware.PageViewMiddleware" not in settings.MIDDLEWARE:
            return
        options = conf.valid_options(PageViewSettings)
        needed = {
            "session": "sessions.middleware.SessionMiddleware",
            "user": "auth.middleware.AuthenticationMiddleware",
        }
        wanted = {options.VISITOR, "user" if options.EXCLUDE_STAFF else ""} & needed.keys()
        for name in sorted(wanted):
            if not any(path.endswith(needed[name].rpartition(".")[2]) for path in settings.MIDDLEWARE):
                yield Warning(
                    f"REDIS_KIT['PAGEVIEWS'] needs the {name} of a request, but MIDDLEWARE has no {needed[name]}.",
                    hint=f"Add 'django.contrib.{needed[name]}'.",
                    id="redis_kit.W020",
                )
