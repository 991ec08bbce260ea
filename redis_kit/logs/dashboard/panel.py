"""The dashboard's page about logs: the most common messages and the last records, or one message."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core import conf, panels
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Content, Field, Figure, Lines, Link, Ranges, Table
from redis_kit.core.panels.ranges import label
from redis_kit.logs import inspection, keys
from redis_kit.logs.inspection import NAMES, Logs, Message
from redis_kit.logs.record import StoredRecord
from redis_kit.logs.settings import LogSettings

HOURS = {1: _("1 hour"), 24: _("24 hours"), 48: _("48 hours")}
ERRORS, WARNINGS, OTHERS = NAMES[:2], NAMES[2:3], NAMES[3:]


class LogsPanel(panels.Panel):
    """The records of all processes by hour, their most common messages, and the last ones of each level."""

    slug = "logs"
    title = _("Logs")
    permission = "redis_kit.view_logs"

    def search(self) -> panels.Search:
        """Return the search by level and text, and for one message."""
        fields = [Field("level", _("Level"), NAMES, any=_("All levels")), Field("text", _("Text"), optional=True)]
        return panels.Search(_("Search"), [*fields, Field("message", _("Fingerprint of a message"), optional=True)])

    def content(self) -> Iterator[Content]:
        """Return the content. Two round trips, one for a message."""
        asked = {name: text.strip() for name, text in self.viewer.asked.items()}
        if message := asked.get("message"):
            yield from _message(*Logs().fingerprint(message))
            return
        chosen = int(asked["range"]) if asked.get("range", "") in map(str, HOURS) else 1
        flows: list[Flow[Any]] = [inspection.read_levels(48), inspection.read_common(chosen, 20)]
        flows.append(inspection.read_recent(asked.get("level", ""), asked.get("text", ""), panels.MOST_ROWS))
        levels, common, recent = Logs().run_flow(gather(flows))
        yield from _figures(levels[-1])
        parts = [(_("Others"), OTHERS), (_("Errors"), ERRORS), (_("Warnings"), WARNINGS)]
        bars = [(name, [sum(map(hour.__getitem__, names)) for hour in levels]) for name, names in parts]
        yield panels.StackedBars(_("Records by hour"), _labels(), bars)
        search = {name: asked[name] for name in ("level", "text") if asked.get(name)}
        yield Ranges(self.slug, [(name, number) for number, name in HOURS.items()], chosen, search)
        columns = (_("Message"), _("Records"), _("Level"), _("First seen"))
        yield Table(_("Most common messages"), columns, [*map(_counted, common)], empty=_("Nothing was logged."))
        columns = (_("Time"), _("Level"), _("Logger"), _("Message"))
        rows = [(each.time, each.level, each.logger, Lines((_link(each), *_context(each)))) for each in recent]
        yield Table(_("Last records"), columns, rows, empty=_("No record matches."))

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the numbers of the last 24 hours. One round trip."""
        return {conf.section(LogSettings).USING: inspection.read_levels(24)}

    def tile(self, replies: Mapping[str, Any]) -> panels.Tile:
        """Return the numbers of this hour, and the errors by hour."""
        (levels,) = replies.values()
        trend = panels.Sparkline(
            _("Errors in each of 24 hours"), [sum(map(hour.__getitem__, ERRORS)) for hour in levels]
        )
        return panels.Tile(list(_figures(levels[-1])), trend)


def _figures(hour: Counter[str]) -> Iterator[Figure]:
    yield Figure(_("Errors"), sum(map(hour.__getitem__, ERRORS)), _("this hour"))
    yield Figure(_("Warnings"), sum(map(hour.__getitem__, WARNINGS)), _("this hour"))
    dropped = hour[keys.DROPPED]
    yield Figure(_("Dropped records"), dropped, _("this hour, by full buffers"), alarm=dropped > 0)


def _counted(message: Message) -> tuple[Any, ...]:
    sample = message.sample
    if sample is None:
        return _("others"), message.records, None, None
    seen = Lines((message.first_seen, _("new in this hour") if message.is_new else ""))
    return Lines((_link(sample, sample.template), sample.error, sample.place)), message.records, sample.level, seen


def _message(message: Message, counts: Sequence[int]) -> Iterator[Content]:
    yield Figure(_("Records"), sum(counts), _("in 48 hours"))
    yield Figure(_("Records"), counts[-1], _("this hour"))
    yield Figure(_("First seen"), message.first_seen)
    yield panels.Bars(_("Records by hour"), list(zip(_labels(), counts, strict=True)))
    if sample := message.sample:
        names = (_("Time"), _("Level"), _("Logger"), _("Error"), _("Place"), _("Path"), _("User"), _("Job"))
        values = (*sample[:3], *sample[4:9])
        rows = [(name, value) for name, value in zip(names, values, strict=True) if value]
        rows.append((_("Template"), sample.template or sample.message))
        yield Table(_("Last record"), (_("Property"), _("Value")), rows)
        texts = ((_("Message"), sample.message), (_("Traceback"), sample.traceback))
        yield from (panels.Listing(title, text) for title, text in texts if text)


def _labels() -> list[str]:
    return [label(hour * 60, day=True) for hour in inspection.last_hours(48)]


def _link(record: StoredRecord, text: str = "") -> Link:
    return Link((text or record.message).partition("\n")[0], LogsPanel.slug, {"message": record.fingerprint})


def _context(record: StoredRecord) -> Iterator[str]:
    yield record.error
    named = ((record.path, "%s"), (record.user, _("user %s")), (record.job, _("job %s")))
    yield " · ".join(str(name) % value for value, name in named if value)
