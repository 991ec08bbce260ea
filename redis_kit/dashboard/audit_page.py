"""The dashboard's page about the actions of its users."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import MOST_ROWS, Content, Field, Link, Pages, Panel, Search, Table
from redis_kit.dashboard.collect import may_view, panels


class AuditPanel(Panel):
    """The entries of the admin's log that buttons of the dashboard wrote, the latest first."""

    slug = "audit"
    title = _("Audit log")
    permission = "admin.view_logentry"
    needs_server = False

    def search(self) -> Search:
        """Return the search for a text in the entries."""
        return Search(_("Search"), [Field("text", _("Text in the entry, such as a queue or a reason"), optional=True)])

    def content(self) -> Iterator[Content]:
        """Return a page of entries. It asks the database, and no server."""
        from django.contrib.admin.models import LogEntry
        from django.contrib.contenttypes.models import ContentType

        from redis_kit.dashboard.models import Dashboard

        asked = self.asked("text")
        own = ContentType.objects.get_for_model(Dashboard, for_concrete_model=False)
        entries = LogEntry.objects.filter(content_type=own).order_by("-action_time", "-pk").select_related("user")
        if asked:
            entries = entries.filter(change_message__icontains=asked)
        total, start = entries.count(), (self.viewer.page - 1) * MOST_ROWS
        pages = {panel.slug: Link(panel.title, panel.slug) for panel in panels() if may_view(panel, self.viewer.may)}
        yield Table(
            _("Actions of users, the latest first"),
            (_("Time"), _("User"), _("Page"), _("Action")),
            [
                (
                    entry.action_time,
                    entry.user.get_username(),
                    pages.get(entry.object_id or "", entry.object_id),
                    entry.get_change_message(),
                )
                for entry in entries[start : start + MOST_ROWS]
            ],
            empty=_("No entry has this text.") if asked else _("Nobody has pressed a button."),
        )
        yield from Pages.of(self.slug, self.viewer.page, total, {"text": asked} if asked else {})

    def tile(self, replies: Mapping[str, Any]) -> None:
        """Return nothing: the overview shows the present."""
