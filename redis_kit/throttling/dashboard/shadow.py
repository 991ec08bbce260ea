"""The table of shadow mode on the dashboard's page about throttles."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from redis_kit.core.panels import Table
from redis_kit.throttling.dashboard.actions import Target

if TYPE_CHECKING:
    from redis_kit.throttling.statistics.overview import ThrottleFigures
    from redis_kit.throttling.statistics.shadow_report import ShadowReport


def reports_table(reports: Sequence[tuple["ThrottleFigures", "ShadowReport"]]) -> Table:
    """Return the reports of throttles in shadow mode."""
    return Table(
        _("Shadow mode: calls that would be refused"),
        (
            _("Throttle"),
            _("First rate"),
            _("Calls in a day"),
            _("Would be refused"),
            _("99.9 % of periods, at most"),
            _("All periods, at most"),
            _("Proposed rate"),
        ),
        [(Target.of(figures.throttle).shown, str(report.rate), *_figures(report)) for figures, report in reports],
    )


def _figures(report: "ShadowReport") -> tuple[Any, ...]:
    calls = report.allowed + report.refused
    share = f"{100 * report.share:.1f} %"
    return calls, share, report.high, report.highest, str(report.proposed) if report.proposed else None
