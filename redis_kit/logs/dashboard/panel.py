"""The dashboard's page about logs: the most common messages and the last records, those of a search, or a message."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core import conf, panels
from redis_kit.core.errors import InvalidValue
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Content, Field, Figure, Lines, Link, Listing, Pages, Ranges, Table
from redis_kit.core.panels.ranges import label
from redis_kit.logs import inspection, keys
from redis_kit.logs.inspection import NAMES, Logs, Message
from redis_kit.logs.record import NUMBERS, StoredRecord
from redis_kit.logs.settings import LogSettings

HOURS = {1: _("1 hour"), 24: _("24 hours"), 48: _("48 hours")}
ERRORS, WARNINGS, OTHERS = NAMES[:2], NAMES[2:3], NAMES[3:]
ROWS, MATCHES = 10, 20  # of a page of messages, and of a page of records
LONGEST_HEADING = 100  # characters


class LogsPanel(panels.Panel):
    """The records of all processes by hour, their most common messages, and the last ones of each level."""

    slug = "logs"
    title = _("Logs")
    permission = "redis_kit.view_logs"
    message_title = ""

    def heading(self) -> panels.Text:
        """Return the title of the message that content() has read."""
        return self.message_title[:LONGEST_HEADING] or self.title

    def search(self) -> panels.Search:
        """Return the search by level and text, and for one message."""
        fields = [Field("level", _("Level"), NAMES, any=_("All levels")), Field("text", _("Text"), optional=True)]
        return panels.Search(_("Search"), [*fields, Field("message", _("Fingerprint of a message"), optional=True)])

    def content(self) -> Iterator[Content]:
        """Return the content. Two round trips."""
        asked = {
            name: text for name in ("level", "text", "message") if (text := self.viewer.asked.get(name, "").strip())
        }
        if "message" in asked:
            yield from self._message(asked["message"])
        elif asked:
            yield from self._matches(asked)
        else:
            yield from self._overview()

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

    def _overview(self) -> Iterator[Content]:
        hours, number = self.viewer.asked.get("range", ""), self.viewer.page
        chosen = int(hours) if hours in map(str, HOURS) else 1
        flows: list[Flow[Any]] = [inspection.read_levels(48), inspection.read_recent("", "", MATCHES)]
        flows.append(inspection.read_common(chosen, ROWS, (number - 1) * ROWS))
        levels, recent, (total, common) = Logs().run_flow(gather(flows))
        yield from _figures(levels[-1])
        parts = [(_("Others"), OTHERS), (_("Errors"), ERRORS), (_("Warnings"), WARNINGS)]
        bars = [(name, [sum(map(hour.__getitem__, names)) for hour in levels]) for name, names in parts]
        yield panels.StackedBars(_("Records by hour"), _labels(), bars)
        yield Ranges(self.slug, [(name, count) for count, name in HOURS.items()], chosen)
        columns = (_("Last record"), _("Records"), _("Level"), _("First seen"))
        yield Table(_("Most common messages"), columns, [*map(_counted, common)], empty=_("Nothing was logged."))
        if total > ROWS:
            yield Pages(self.slug, number, -(-total // ROWS), {"range": str(chosen)})
        yield _records(_("Last records"), recent)

    def _matches(self, asked: Mapping[str, str]) -> Iterator[Content]:
        level = asked.get("level", "").upper()
        found = Logs().recent(level if level in NAMES else "", text=asked.get("text", ""), limit=1000)
        number = self.viewer.page
        yield _records(_("Records that match"), found[(number - 1) * MATCHES : number * MATCHES])
        if len(found) > MATCHES:
            yield Pages(self.slug, number, -(-len(found) // MATCHES), asked)

    def _message(self, asked: str) -> Iterator[Content]:
        fingerprint = asked.partition(".")[0]
        level = next((name for name, level in NUMBERS.items() if fingerprint.startswith(str(level // 10))), "")
        flows: list[Flow[Any]] = [inspection.read_recent(level, fingerprint, MATCHES)]
        flows.append(inspection.read_fingerprint(fingerprint))
        try:
            recent, (message, counts) = Logs().run_flow(gather(flows))
        except InvalidValue:
            yield Table(_("Message"), (), (), empty=_("No message of the last 48 hours has this fingerprint."))
            return
        self.message_title = message.title
        yield Figure(_("Records"), sum(counts), _("in 48 hours"))
        yield Figure(_("Records"), counts[-1], _("this hour"))
        yield Figure(_("First seen"), message.first_seen)
        record = next((each for each in recent if each.id == asked), None)
        if shown := record or message.sample:
            yield from _details(_("Record") if record else _("Last record"), shown)
        yield panels.Bars(_("Records by hour"), list(zip(_labels(), counts, strict=True)))
        yield _records(_("Last records"), recent)


def _figures(hour: Counter[str]) -> Iterator[Figure]:
    yield Figure(_("Errors"), sum(map(hour.__getitem__, ERRORS)), _("this hour"))
    yield Figure(_("Warnings"), sum(map(hour.__getitem__, WARNINGS)), _("this hour"))
    dropped = hour[keys.DROPPED]
    yield Figure(_("Dropped records"), dropped, _("this hour, by full buffers"), alarm=dropped > 0)


def _counted(message: Message) -> tuple[Any, ...]:
    sample = message.sample
    if sample is None:
        return _("others"), message.records, None, None
    title = Link(message.title, LogsPanel.slug, {"message": message.fingerprint})
    seen = Lines((message.first_seen, _("new in this hour") if message.is_new else ""))
    return Lines((title, sample.template, sample.error, sample.place)), message.records, sample.level, seen


def _details(title: panels.Text, record: StoredRecord) -> Iterator[Content]:
    for name, text in ((_("Message"), record.message), (_("Traceback"), record.traceback)):
        if text:
            yield Listing(name, text, open=True)
    names = (_("Time"), _("Level"), _("Logger"), _("Error"), _("Place"), _("Path"), _("User"), _("Job"), _("Template"))
    values = (*record[:3], *record[4:9], record.template)
    rows = [(name, value) for name, value in zip(names, values, strict=True) if value]
    yield Table(title, (_("Property"), _("Value")), rows)


def _records(title: panels.Text, records: Sequence[StoredRecord]) -> Table:
    columns = (_("Time"), _("Level"), _("Logger"), _("Message"))
    rows = [(each.time, each.level, each.logger, Lines((_link(each), *_context(each)))) for each in records]
    return Table(title, columns, rows, empty=_("No record matches."))


def _link(record: StoredRecord) -> Link:
    return Link(record.message.partition("\n")[0], LogsPanel.slug, {"message": record.id})


def _context(record: StoredRecord) -> Iterator[str]:
    yield record.error
    named = ((record.path, "%s"), (record.user, _("user %s")), (record.job, _("job %s")))
    yield " · ".join(str(name) % value for value, name in named if value)


def _labels() -> list[str]:
    return [label(hour * 60, day=True) for hour in inspection.last_hours(48)]
