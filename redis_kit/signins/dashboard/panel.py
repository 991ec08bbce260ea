"""The dashboard's page about sign-ins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from time import monotonic
from typing import Any, NamedTuple

from django.contrib.auth import get_permission_codename
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from redis_kit.core import conf
from redis_kit.core.dates import first_weekday
from redis_kit.core.flow import Flow
from redis_kit.core.gather import gather
from redis_kit.core.panels import (
    Content,
    Downloads,
    Field,
    Figure,
    HeatCell,
    HeatMap,
    LineChart,
    Lines,
    Link,
    Panel,
    Search,
    Shade,
    Sparkline,
    Table,
    Tile,
)
from redis_kit.signins import mixin
from redis_kit.signins.activity import (
    MONTH,
    WEEK,
    ActiveDay,
    Activity,
    Cohort,
    Standing,
    by_day,
    by_windows,
    cohorts,
    count_at_risk,
    leaders,
)
from redis_kit.signins.database.record import Rebuild
from redis_kit.signins.days import today
from redis_kit.signins.users import SignInUser, overview

LINES, LEADERS = 28, 10  # days, users
DAYS = 63  # before which no week, month or cohort of the page begins
STALE_AFTER = 60.0  # seconds, while only today's numbers change
NO_MODEL = gettext_lazy(
    "No model counts sign-ins. Add SignInMixin to the user model: class User(SignInMixin, AbstractUser). If "
    "the site already uses Django's User, add a proxy model: class Customer(SignInMixin, User) with proxy = True in "
    "its Meta. Then call sign_in() when a user is here, or set REDIS_KIT['SIGNINS']['AT_LOG_IN']."
)
WEEKS = 53
ACTIVE, COHORTS, FILE_OF_DAYS = "active-users", "cohorts", "days"
COHORT_WEEKS = 8  # of cohorts


class _Joined(NamedTuple):
    """Figures from the bitmaps of many days, with the number of users on each of these days at that time."""

    daily: list[ActiveDay]
    until: float
    weekly: list[ActiveDay]
    monthly: list[ActiveDay]
    cohorts: list[Cohort]

    def is_current(self, daily: list[ActiveDay]) -> bool:
        """Return whether nothing changed. While only today's number grows, that holds for a minute."""
        if self.daily[:-1] != daily[:-1]:
            return False
        return self.daily[-1] == daily[-1] or monotonic() < self.until


_joined: dict[str, _Joined] = {}
conf.on_change(_joined.clear)


class SignInsPanel(Panel):
    """Active users, cohorts and streaks of a model, and the days of one user."""

    slug = "signins"
    title = gettext_lazy("Sign-ins")

    def search(self) -> Search | None:
        """Return the choice of a model, if there are several, and of a user."""
        labels = [model._meta.label for model in mixin.models()]
        fields = [Field("model", gettext_lazy("Model"), labels)] if len(labels) > 1 else []
        user = Field("user", gettext_lazy("Primary key of a user"), optional=True)
        return Search(gettext_lazy("Show"), [*fields, user]) if labels else None

    def content(self) -> Iterator[Content]:
        """Return the content. Three round trips for a model, one if no day changed; one for a user."""
        model, user = self._asked()
        if model is None:
            yield Table(_("Sign-ins by day"), (), [], empty=NO_MODEL)
        elif user:
            yield from self._user(model, user)
        else:
            yield from self._model(model)

    def file(self, name: str) -> Iterable[Sequence[Any]] | None:
        """Return the rows of a file. Two round trips for the cohorts, one for others."""
        model, user = self._asked()
        if model is None or (user and not self._may_view(model)):
            return None
        if user:
            return _file_of_days(model, user) if name == FILE_OF_DAYS else None
        of_all = {ACTIVE: _active, COHORTS: _cohorts}.get(name)
        return of_all(Activity(model)) if of_all else None

    def reads(self) -> dict[str, Flow[Any]]:
        """Return the active users of the first model on the last days. One round trip."""
        models = mixin.models()
        if not models:
            return {}
        activity, last = Activity(models[0]), today()
        flows: list[Flow[Any]] = [
            by_day(activity.encoded, [last - timedelta(back) for back in reversed(range(LINES))]),
            count_at_risk(activity.encoded, last, 3),
        ]
        return {activity.using: gather(flows)}

    def tile(self, replies: Mapping[str, Any]) -> Tile | None:
        """Return the users who signed in, and the streaks that end today; None if no model counts sign-ins."""
        if not replies:
            return None
        ((daily, at_risk),) = replies.values()
        figures = [
            Figure(_("Today"), daily[-1].users),
            Figure(_("Yesterday"), daily[-2].users),
            Figure(_("Streaks that end today"), at_risk),
        ]
        trend = _("Active users on each of %d days") % LINES
        return Tile(figures, Sparkline(trend, [day.users for day in daily]))

    def _asked(self) -> tuple[Any, str]:
        """Return the model that the viewer asks for, by default the first one, and the primary key of a user, or ""."""
        models = {model._meta.label: model for model in mixin.models()}
        first = next(iter(models.values()), None)
        return models.get(self.asked("model"), first), self.asked("user")

    def _model(self, model: Any) -> Iterator[Content]:
        activity, last = Activity(model), today()
        flows: list[Flow[Any]] = [
            by_day(activity.encoded, year_to(last)),
            leaders(model, last, LEADERS),
            count_at_risk(activity.encoded, last, 3),
        ]
        daily, standings, at_risk = activity.run_flow(gather(flows))
        joined = _joined_days(activity, daily[-DAYS:])
        yield Figure(_("Signed in today"), daily[-1].users)
        yield Figure(_("Signed in yesterday"), daily[-2].users)
        yield Figure(_("In 7 days"), joined.weekly[-1].users)
        yield Figure(_("In 30 days"), joined.monthly[-1].users)
        yield Figure(_("Streaks that end today"), at_risk, hint=_("Of 3 days or more."))
        lines = [(_("On the day"), daily[-LINES:]), (_("In 7 days"), joined.weekly), (_("In 30 days"), joined.monthly)]
        yield active_users(_("Active users (* so far)"), lines)
        yield year_of_days(_("Sign-ins by day"), last, dict(daily))
        yield cohort_table(_("Users who come back, by the week of their first sign-in (* so far)"), joined.cohorts)
        yield self._leaders(model, standings)
        offered = [(_("Active users of 53 weeks"), ACTIVE), (_("Users who come back"), COHORTS)]
        yield Downloads(self.slug, offered, {"model": model._meta.label})

    def _leaders(self, model: Any, standings: list[Standing]) -> Table:
        rows: list[tuple[Any, int]] = [(str(id), streak) for id, streak in standings]
        if self._may_view(model):
            names, label = _names(model, [id for id, _streak in standings]), model._meta.label
            links = (Link(str(id), self.slug, {"model": label, "user": str(id)}) for id, _streak in standings)
            rows = [(Lines((link, names.get(id))), streak) for link, (id, streak) in zip(links, standings, strict=True)]
        return Table(_("Longest streaks"), (_("Primary key"), _("Days in a row")), rows, empty=_("No streak goes on."))

    def _may_view(self, model: Any) -> bool:
        """Return whether the viewer may view instances of a model in the admin: their names, and the days of each."""
        return self.viewer.may(f"{model._meta.app_label}.{get_permission_codename('view', model._meta)}")

    def _user(self, model: Any, id: str) -> Iterator[Content]:
        title, last = _("Sign-ins of %(name)s"), today()
        if not self._may_view(model):
            refused = _("The days of one user need the permission to view %(model)s.")
            yield Table(title % {"name": id}, (), [], empty=refused % {"model": model._meta.verbose_name})
            return
        summary, days = Activity(model).run_flow(overview(SignInUser(model, id), year_to(last)[0], last))
        if summary.first is None:
            yield Table(title % {"name": id}, (), [], empty=_("No user with this primary key has signed in."))
            return
        pk = model._meta.pk.to_python(id)
        names = _names(model, [pk])
        name = f"{names[pk]} ({id})" if names else id
        yield Figure(_("Days in a row"), summary.streak)
        yield Figure(_("Longest streak"), summary.longest)
        yield Figure(_("Sign-ins"), summary.total)
        yield Figure(_("First sign-in"), date_format(summary.first, "DATE_FORMAT"))
        signed = {day: 1 for day, kind in days if kind != "freeze"}
        yield year_of_days(title % {"name": name}, last, signed)
        yield Downloads(self.slug, [(_("All days"), FILE_OF_DAYS)], {"model": model._meta.label, "user": id})


def _names(model: Any, ids: list[Any]) -> dict[Any, str]:
    return {user.pk: str(user) for user in model._default_manager.filter(pk__in=ids)}


def _joined_days(activity: Activity, daily: list[ActiveDay]) -> _Joined:
    """Return weeks, months and cohorts. None or two round trips, which transfer a bit for each user and day."""
    key, last = f"{activity.using} {activity.key('')}", daily[-1].day
    joined = _joined.get(key)
    if joined is None or not joined.is_current(daily):
        flows: list[Flow[Any]] = [
            by_windows(activity.encoded, [day.day for day in daily[-LINES:]], [WEEK, MONTH]),
            weekly_cohorts(activity, last),
        ]
        (weekly, monthly), rows = activity.run_flow(gather(flows))
        joined = _joined[key] = _Joined(daily, monotonic() + STALE_AFTER, weekly, monthly, rows)
    return joined


def year_to(last: date) -> list[date]:
    """Return the days of the 53 weeks that end with the week of a day, up to that day."""
    ahead = (last.weekday() - first_weekday()) % 7
    return [last - timedelta(ago) for ago in range(ahead + 7 * (WEEKS - 1), -1, -1)]


def year_of_days(title: str, last: date, values: Mapping[date, float]) -> HeatMap:
    """Return a row for each weekday and a column for each of 53 weeks."""
    days = year_to(last)
    names = [date_format(day, "DATE_FORMAT") for day in days]
    names[-1] = _("%(day)s, so far") % {"day": names[-1]}
    cells = [HeatCell(at % 7, at // 7, names[at], values.get(day, 0)) for at, day in enumerate(days)]
    months = [date_format(day, "M") for day in days[::7]]
    return HeatMap(title, [str(WEEKDAYS_ABBR[(first_weekday() + row) % 7]) for row in range(7)], months, cells)


def active_users(title: str, lines: Sequence[tuple[str, Sequence[ActiveDay]]]) -> LineChart:
    """Return a line for each name, over the same days, the last of which goes on and has an asterisk."""
    labels = [date_format(day.day, "MONTH_DAY_FORMAT") for day in lines[0][1]]
    labels[-1] += "*"
    return LineChart(title, labels, [(name, [day.users for day in days]) for name, days in lines])


def cohort_table(title: str, rows: Sequence[Cohort]) -> Table:
    """Return a row for each cohort, the newest first, with the share of its users in each week after its own.

    The newest cohort and the last week of each cohort have an asterisk if that week goes on.
    """
    most = max((len(cohort.retained) for cohort in rows), default=0)
    columns = [_("Week of"), _("New users"), *(_("Week %(number)d") % {"number": at} for at in range(1, most))]
    lines = [_cohort_row(cohort, most) for cohort in reversed(rows) if cohort.size]
    return Table(title, columns, lines, empty=_("No user signed in for the first time in these weeks."))


def _cohort_row(cohort: Cohort, most: int) -> list[Any]:
    shares = [users / cohort.size for users in cohort.retained[1:]]
    texts = [date_format(cohort.day, "DATE_FORMAT"), *(f"{100 * share:.0f} %" for share in shares)]
    if cohort.partial:
        texts[-1] += "*"
    cells = [Shade(text, share) for text, share in zip(texts[1:], shares, strict=True)]
    return [texts[0], cohort.size, *cells, *[""] * (most - 1 - len(cells))]


def weekly_cohorts(activity: Activity, last: date) -> Flow[list[Cohort]]:
    """Return the cohorts of the weeks up to a day."""
    monday = last - timedelta(last.weekday())
    return cohorts(activity.encoded, monday - timedelta(WEEK * (COHORT_WEEKS - 1)), last, last, period=WEEK)


def _active(activity: Activity) -> Iterator[Sequence[Any]]:
    last = today()
    windows = activity.run_flow(by_windows(activity.encoded, year_to(last), [1, WEEK, MONTH]))
    yield "day", "users", "in_7_days", "in_30_days", "partial"
    for same_day in zip(*windows, strict=True):
        day = same_day[0].day
        yield day, *(window.users for window in same_day), int(day == last)


def _cohorts(activity: Activity) -> Iterator[Sequence[Any]]:
    rows = activity.run_flow(weekly_cohorts(activity, today()))
    yield "week_of", "new_users", *(f"week_{number}" for number in range(1, COHORT_WEEKS)), "last_is_partial"
    for day, size, (_size, *retained), partial in rows:
        yield day, size, *retained, *[""] * (COHORT_WEEKS - 1 - len(retained)), int(partial)


def _file_of_days(model: Any, user: str) -> Iterator[Sequence[Any]]:
    yield "day", "kind"
    for _id, days in Rebuild(model).days_of([user]):
        yield from days
