"""The dashboard's page about logs: the most common messages and the last records, those of a search, or a message."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core import conf, panels
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import Content, Field, Figure, Lines, Link, Listing, Pages, Ranges, Table, label
from redis_kit.logs import keys
from redis_kit.logs.inspection import Logs, Message, last_hours, read_common, read_fingerprint, read_levels, read_recent
from redis_kit.logs.record import LEVELS, NAMES, StoredRecord
from redis_kit.logs.settings import LogSettings

HOURS = {"1": _("1 hour"), "24": _("24 hours"), "48": _("48 hours")}
ERRORS, WARNINGS, OTHERS = NAMES[:2], NAMES[2:3], NAMES[3:]
PROPERTIES = _("Time"), _("Level"), _("Logger"), _("Error"), _("Place"), _("Path"), _("User"), _("Job"), _("Template")
MESSAGES, RECORDS = 10, 20  # of a page


class LogsPanel(panels.Panel):
    """The records of all processes by hour, their most common messages, and the last ones of each level."""

    slug = "logs"
    title = _("Logs")
    permission = "redis_kit.view_logs"
    message = ""  # that content() has read

    def heading(self) -> panels.Text:
        """Return the beginning of the message on the page of one."""
        return self.message[:100] or self.title

    def search(self) -> panels.Search:
        """Return the search by level and text, and for one message."""
        fields = [Field("level", _("Level"), NAMES, any=_("All levels")), Field("text", _("Text"), optional=True)]
        return panels.Search(_("Search"), [*fields, Field("message", _("Fingerprint of a message"), optional=True)])

    def content(self) -> Iterator[Content]:
        """Return the content. Two round trips."""
        level, text, message = (self.viewer.asked.get(name, "").strip() for name in ("level", "text", "message"))
        if message:
            return self._message(message)
        return self._matches({"level": level, "text": text}) if level or text else self._overview()

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the numbers of the last 24 hours. One round trip."""
        return {conf.section(LogSettings).USING: read_levels(24)}

    def tile(self, replies: Mapping[str, Any]) -> panels.Tile:
        """Return the numbers of this hour, and the errors by hour."""
        (hours,) = replies.values()
        trend = panels.Sparkline(_("Errors in each of 24 hours"), [_sum(hour, ERRORS) for hour in hours])
        return panels.Tile(list(_figures(hours[-1])), trend)

    def _overview(self) -> Iterator[Content]:
        asked, number = self.viewer.asked.get("range", ""), self.viewer.page
        chosen = int(asked) if asked in HOURS else 1
        flows: list[Flow[Any]] = [read_levels(48), read_recent("", "", RECORDS)]
        flows.append(read_common(chosen, MESSAGES, (number - 1) * MESSAGES))
        hours, recent, (total, common) = Logs().run_flow(gather(flows))
        yield from _figures(hours[-1])
        parts = ((_("Others"), OTHERS), (_("Errors"), ERRORS), (_("Warnings"), WARNINGS))
        bars = [(name, [_sum(hour, levels) for hour in hours]) for name, levels in parts]
        yield panels.StackedBars(_("Records by hour"), _labels(), bars)
        yield Ranges(self.slug, [(name, int(count)) for count, name in HOURS.items()], chosen)
        columns = (_("Last record"), _("Records"), _("Level"), _("First seen"))
        yield Table(_("Most common messages"), columns, [*map(_counted, common)], empty=_("Nothing was logged."))
        yield from Pages.of(self.slug, number, total, {"range": str(chosen)}, MESSAGES)
        yield _records(_("Last records"), recent)

    def _matches(self, asked: Mapping[str, str]) -> Iterator[Content]:
        records, number = Logs().recent(**asked, limit=1000), self.viewer.page
        yield _records(_("Records that match"), records[(number - 1) * RECORDS : number * RECORDS])
        yield from Pages.of(self.slug, number, len(records), asked, RECORDS)

    def _message(self, asked: str) -> Iterator[Content]:
        fingerprint = asked.partition(".")[0]
        level = next((name for name, digit in LEVELS.items() if fingerprint.startswith(digit)), "")
        flows: list[Flow[Any]] = [read_fingerprint(fingerprint, required=False)]
        flows.append(read_recent(level, fingerprint, 1000))
        (message, counts), recent = Logs().run_flow(gather(flows))
        record = next((each for each in recent if each.id == asked), None)
        shown = record or message.sample or next(iter(recent), None)
        self.message = shown.title if shown else fingerprint
        yield Figure(_("Records"), sum(counts) or None, _("in 48 hours"))
        yield Figure(_("Records"), counts[-1] if any(counts) else None, _("this hour"))
        yield Figure(_("First seen"), message.first_seen)
        if shown:
            texts = ((_("Message"), shown.message), (_("Traceback"), shown.traceback))
            yield from (Listing(name, text, open=True) for name, text in texts if text)
            rows = [pair for pair in zip(PROPERTIES, (*shown[:3], *shown[4:10]), strict=True) if pair[1]]
            yield Table(_("Record") if record else _("Last record"), (_("Property"), _("Value")), rows)
        yield panels.Bars(_("Records by hour"), list(zip(_labels(), counts, strict=True)))
        yield _records(_("Last records"), recent[:RECORDS])


def _sum(hour: Counter[str], levels: Sequence[str]) -> int:
    return sum(map(hour.__getitem__, levels))


def _labels() -> list[str]:
    return [label(hour * 60, day=True) for hour in last_hours(48)]


def _figures(hour: Counter[str]) -> Iterator[Figure]:
    yield Figure(_("Errors"), _sum(hour, ERRORS), _("this hour"))
    yield Figure(_("Warnings"), _sum(hour, WARNINGS), _("this hour"))
    yield Figure(_("Dropped records"), hour[keys.DROPPED], _("this hour"), alarm=hour[keys.DROPPED] > 0)


def _counted(message: Message) -> tuple[Any, ...]:
    if not (sample := message.sample):
        return _("others"), message.records, None, None
    title = Link(sample.title, LogsPanel.slug, {"message": message.fingerprint})
    seen = Lines((message.first_seen, _("new in this hour") if message.is_new else ""))
    return Lines((title, sample.template, sample.error, sample.place)), message.records, sample.level, seen


def _records(title: panels.Text, records: Sequence[StoredRecord]) -> Table:
    columns = (_("Time"), _("Level"), _("Logger"), _("Message"))
    rows = [(each.time, each.level, each.logger, _lines(each)) for each in records]
    return Table(title, columns, rows, empty=_("No record matches."))


def _lines(record: StoredRecord) -> Lines:
    link = Link(record.title, LogsPanel.slug, {"message": record.id})
    named = ((record.path, "%s"), (record.user, _("user %s")), (record.job, _("job %s")))
    return Lines((link, record.error, " · ".join(str(name) % value for value, name in named if value)))
