"""The dashboard's pages in the Django admin."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import get_template, render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import get_conditional_response
from django.utils.html import format_html
from django.utils.http import quote_etag, urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from redis_kit.core import conf
from redis_kit.core.component import components
from redis_kit.core.errors import InvalidValue, RedisKitError
from redis_kit.core.panels import NAME, Effect, Panel, Viewer
from redis_kit.core.settings import KitSettings
from redis_kit.core.values.csv_rows import CSVWriter
from redis_kit.core.web.page_marks import uncounted
from redis_kit.dashboard.cells import MAX_TOOLTIP, Cell, cell, visible
from redis_kit.dashboard.collect import TileView, collect, draw, may_view, outages, panels, text_of, tiles
from redis_kit.dashboard.rendering import ActionButton, quoted, search_view
from redis_kit.dashboard.settings import DashboardSettings

INTERVALS = {2, 5, 10, 30}  # seconds between refreshes, for viewers to choose from
MAX_ROWS = 10_000  # of a file
MAX_MESSAGE = 1000  # characters
MAX_SUBJECT = 200  # characters of an entry among the admin's recent actions
PLACE = re.compile(r"[0-9a-f.]{1,1000}")  # the number of a page, or the cursor of a list
MAX_REASON = 200  # characters


class DashboardAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # has no parameters at run time
    """The pages for all components: an overview, a page for each panel, a fragment of each, and the buttons."""

    def get_urls(self) -> list[URLPattern]:
        """Return the routes. The name ``..._change`` makes the admin's log link to a panel's page."""

        def route(where: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
            return path(where, self.admin_site.admin_view(view), name=f"redis_kit_dashboard_{name}")

        return [
            route("", require_safe(self.overview), "changelist"),
            route("fragment/", require_safe(self.overview_fragment), "overview_fragment"),
            route("<str:slug>/", require_safe(self.panel), "change"),
            route("<str:slug>/fragment/", require_safe(self.panel_fragment), "panel_fragment"),
            route("<str:slug>/<slug:name>.csv", require_safe(self.download), "download"),
            route("<str:slug>/do/<str:name>/", require_http_methods(["GET", "HEAD", "POST"])(self.act), "act"),
        ]

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Return whether this user may view the dashboard; being staff is not enough."""
        return conf.section(DashboardSettings).ENABLED and request.user.has_perm("redis_kit.view_dashboard")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether the admin's index shows the dashboard."""
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Return False: nothing can be added."""
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def overview(self, request: HttpRequest) -> HttpResponse:
        """Show what needs attention, and a tile for each panel."""
        fragment = self._overview(request)
        return self._page(
            request, "overview", {"title": _("Dashboard"), "fragment": fragment}, self._url("overview_fragment")
        )

    @uncounted
    def overview_fragment(self, request: HttpRequest) -> HttpResponse:
        """Return the part of the overview that changes; 304 if it did not."""
        return _conditional(request, self._overview(request))

    def panel(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Show the content of one panel, its search form and its actions."""
        panel = self._panel(request, slug)
        buttons = self._buttons(request, panel)
        fragment, search = self._content(panel, buttons), search_view(panel)  # which shows what the content chose
        context = {
            "title": cell(panel.heading()).text,
            "fragment": fragment,
            "panel": panel,
            "has_buttons": bool(buttons),
            "fields": [button for button in buttons if button.action.asks is not None],
            "search": search,
        }
        return self._page(request, "panel", context, self._url("panel_fragment", panel.slug) + _query(panel))

    @uncounted
    def panel_fragment(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Return the part of a panel's page that changes; 304 if it did not."""
        panel = self._panel(request, slug)
        return _conditional(request, self._content(panel, self._buttons(request, panel)))

    def download(self, request: HttpRequest, slug: str, name: str) -> HttpResponse:
        """Return a file of a panel as CSV."""
        panel = self._panel(request, slug)
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
        try:
            rows = panel.file(name)
            if rows is None:
                raise Http404
            CSVWriter(response).writerows(islice(rows, MAX_ROWS))
        except RedisKitError as error:
            return self._back_with(request, panel, visible(text_of(error))[:MAX_MESSAGE])
        return response

    def act(self, request: HttpRequest, slug: str, name: str) -> HttpResponse:
        """Run a panel's action, after a confirmation if it needs one, and log it."""
        panel = self._panel(request, slug)
        if request.method != "POST":
            text = _("Nothing was done: you were logged out. Press the button again.")
            return self._back_with(request, panel, text, messages.WARNING)
        action = panel.actions().get(name)
        if action is None:
            raise Http404
        if not request.user.has_perm(action.permission):
            raise PermissionDenied
        try:
            url = self._url("act", panel.slug, name) + _query(panel)
            confirmation = Confirmation(ActionButton(name, action, url), request.POST, request.POST.getlist("chosen"))
            if confirmation.given:
                return self._run_action(request, panel, confirmation)
            return self._confirm(request, panel, confirmation)
        except RedisKitError as error:
            return self._back_with(request, panel, visible(text_of(error))[:MAX_MESSAGE])

    def _confirm(
        self, request: HttpRequest, panel: Panel, confirmation: "Confirmation", refused: str = ""
    ) -> HttpResponse:
        label = cell(confirmation.button.action.label).text
        title = f"{cell(panel.title).text}: {label}"
        context = self._context(request, panel=panel, below=label, title=title, confirmation=confirmation)
        context |= {"back": self._back(panel), "effect": confirmation.apply_effect(panel), "refused": refused}
        status = 400 if confirmation.wrong or refused else 200
        return TemplateResponse(request, "redis_kit/dashboard/confirm.html", context, status=status)

    def _run_action(self, request: HttpRequest, panel: Panel, confirmation: "Confirmation") -> HttpResponse:
        try:
            answer = cell(getattr(panel, confirmation.button.name)(*confirmation.arguments), MAX_MESSAGE)
        except RedisKitError as error:
            reason = visible(text_of(error))[:MAX_MESSAGE]
            if isinstance(error, InvalidValue) and confirmation.button.action.wants:
                return self._confirm(request, panel, confirmation, reason)
            if not getattr(error, "indeterminate", False):
                return self._back_with(request, panel, reason)
            message, level = _("The outcome is unknown."), messages.ERROR
            shown = f"{message} {reason}"
        else:
            message, level = answer.text, messages.SUCCESS
            link = self._url("changelist") + answer.link
            shown = format_html('<a href="{}">{}</a>', link, message) if answer.link else message
        entry = self.model(slug=panel.slug, title=visible(confirmation.subject)[:MAX_SUBJECT])
        self.log_change(request, entry, confirmation.entry(message, MAX_MESSAGE))
        return self._back_with(request, panel, shown, level)

    def _back_with(self, request: HttpRequest, panel: Panel, text: str, level: int = messages.ERROR) -> HttpResponse:
        self.message_user(request, text, level)
        return redirect(self._back(panel))

    def _overview(self, request: HttpRequest) -> str:
        self._require(request)
        allowed = [panel for panel in panels() if may_view(panel, request.user.has_perm)]
        for panel in allowed:
            panel.viewer = Viewer(request.user.has_perm)
        views = tiles(allowed)
        shown = [view for view in views if view.is_shown]
        alerts = [alert for view in shown for alert in view.alerts]
        context = {"views": shown, "alerts": alerts, "base": self._url("changelist"), **_outages(views)}
        return render_to_string("redis_kit/dashboard/_overview.html", context)

    def _content(self, panel: Panel, buttons: Sequence[ActionButton]) -> str:
        content = collect(panel, {button.name: button for button in buttons})
        return draw(content, self._url("changelist"))

    def _buttons(self, request: HttpRequest, panel: Panel) -> list[ActionButton]:
        query = _query(panel)
        return [
            ActionButton(name, action, self._url("act", panel.slug, name) + query)
            for name, action in panel.actions().items()
            if request.user.has_perm(action.permission)
        ]

    def _back(self, panel: Panel) -> str:
        return self._url("change", panel.slug) + _query(panel)

    def _panel(self, request: HttpRequest, slug: str) -> Panel:
        self._require(request)
        for panel in panels():
            if slug in (panel.slug, quote(panel.slug)):
                if not may_view(panel, request.user.has_perm):
                    raise PermissionDenied
                panel.viewer = Viewer(request.user.has_perm, request.GET.dict(), request.user.get_username())
                return panel
        raise Http404

    def _url(self, name: str, *args: str) -> str:
        return reverse(f"admin:redis_kit_dashboard_{name}", args=args, current_app=self.admin_site.name)

    def _require(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any], live: str) -> HttpResponse:
        refresh = conf.section(DashboardSettings).REFRESH
        context |= {"live": live, "etag": _etag(context["fragment"]), "refresh": refresh}
        context |= {"intervals": sorted(INTERVALS | {refresh})}
        return TemplateResponse(request, f"redis_kit/dashboard/{name}.html", self._context(request, **context))

    def _context(
        self, request: HttpRequest, *, panel: Panel | None = None, below: str = "", **context: Any
    ) -> dict[str, Any]:
        here = {"menu": menu(panel.slug if panel else "", may=request.user.has_perm, url=self._url), "opts": self.opts}
        here |= {"panel": panel, "below": below, "breadcrumbs": self._breadcrumbs(panel, below)}
        here |= {"breadcrumb_list": _has_breadcrumb_list()}
        return {**self.admin_site.each_context(request), **here, **context}

    def _breadcrumbs(self, panel: Panel | None, below: str) -> list[tuple[str, str]]:
        """Return the names and addresses of the pages above, and the name of this page, without an address."""
        way = [(str(self.opts.verbose_name_plural), self._url("changelist"))]
        if panel:
            way.append((cell(panel.title).text, self._back(panel)))
        if below:
            way.append((below, ""))
        return [*way[:-1], (way[-1][0], "")]


def _outages(views: Sequence[TileView]) -> dict[str, Any]:
    """Return the connections that are unavailable, and the panels that were skipped as nobody knows what they use."""
    unavailable, skipped = outages(views), [view for view in views if view.skipped]
    if len(unavailable) == 1 and len(conf.section(KitSettings).CONNECTIONS or ("default",)) == 1:
        unavailable[0].contents += skipped
        skipped = []
    return {"outages": unavailable, "skipped": skipped}


@cache
def _has_breadcrumb_list() -> bool:
    """Return whether the admin's pages have their breadcrumbs as a list, as from Django 6.1 on."""
    template = get_template("admin/base.html").template  # type: ignore[attr-defined]
    return '<ol class="breadcrumbs"' in template.source


def _etag(text: str) -> str:
    return quote_etag(blake2b(text.encode(), digest_size=12).hexdigest())


def _conditional(request: HttpRequest, text: str) -> HttpResponse:
    response = HttpResponse(text, headers={"ETag": _etag(text)})
    return get_conditional_response(request, etag=_etag(text), response=response) or response


def _query(panel: Panel) -> str:
    """Return the viewer's search and page as a query string, so that an action leads back to them."""
    search, given = search_view(panel), panel.viewer.asked
    fields = {each.field.name: each.value for each in search.fields if each.field.name in given} if search else {}
    fields |= {name: given[name] for name in ("page", "cursor", "range") if PLACE.fullmatch(given.get(name, ""))}
    return f"?{urlencode(fields)}" if fields else ""


class Page(NamedTuple):
    """A link of the menu."""

    title: Cell
    url: str
    current: bool


class Group(NamedTuple):
    """Pages under one title. A group of one page is a link to it."""

    title: Cell
    pages: list[Page]

    @property
    def current(self) -> bool:
        """Return whether one of its pages is the present one."""
        return any(page.current for page in self.pages)


def menu(here: str, *, may: Callable[[str], bool], url: Callable[..., str]) -> list[Group]:
    """Return the pages that a viewer may see. ``here`` is the slug of the present one, "" for the overview."""
    overview = cell(_("Overview"))
    groups = {"": Group(overview, [Page(overview, url("changelist"), here == "")])}
    for component in components():
        if panels := [panel for panel in component.load_panels() if may_view(panel, may)]:
            title = cell(component.group or panels[0].title)
            pages = groups.setdefault(title.text, Group(title, [])).pages
            pages += [Page(cell(panel.title), url("change", panel.slug), panel.slug == here) for panel in panels]
    return list(groups.values())


class Confirmation:
    """The value of a button and the viewer's answers. Raises InvalidValue without a value, and errors of ``named``.

    ``selected`` are the rows that the viewer selected, for a button below a table. It is ``wrong`` if the viewer typed
    another name, and ``given`` if the action is confirmed.
    """

    def __init__(self, button: ActionButton, given: Mapping[str, str], selected: Sequence[str] = ()) -> None:
        self.button, action = button, button.action
        self.value = given.get("value", "").strip()
        if not action.has_value:
            self.value = ""
        elif "selected" in given:
            if not selected:
                raise InvalidValue(_("Nothing was done: no row was selected."))
            self.value = "\n".join(map(unquote, selected))  # one a line
        elif "row" in given:
            self.value = unquote(given["row"])
        if action.has_value and not self.value:
            raise InvalidValue(_("Nothing was done: the field was empty."))
        self.name = action.named(self.value)
        self.wants = given.get("wants", "").strip()
        self.reason = visible(given.get("reason", "").strip()[:MAX_REASON])
        answered = not action.confirms or "confirmed" in given
        # A name is compared as it is shown: with escapes, which can be typed.
        self.wrong = answered and action.typed and given.get("typed", "").strip() != visible(self.name).strip()
        self.given = answered and not self.wrong

    @property
    def label(self) -> Cell | None:
        """Return the label of the value."""
        return cell(self.button.action.asks or NAME) if self.button.action.has_value else None

    @property
    def shown(self) -> Cell:
        """Return the name, uncut if the viewer has to type it."""
        return cell(self.name, MAX_TOOLTIP) if self.button.action.typed else cell(self.name)

    def apply_effect(self, panel: Panel) -> Cell | None:
        """Return what will happen, and from then on carry the value of the Effect. Raises RedisKitError."""
        effect = panel.effect_of(self.button.action, self.value)
        if isinstance(effect, Effect):
            effect, self.value = effect
            self.name = self.button.action.named(self.value)
        return cell(effect, MAX_TOOLTIP) if effect else None

    @property
    def row(self) -> str:
        """Return the value as a form can carry it unchanged."""
        return quoted(self.value)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of the panel's method."""
        return (self.value, self.wants) if self.button.action.wants else (self.value,)

    @property
    def subject(self) -> str:
        """Return what is done to what, as the admin's recent actions show it."""
        label = str(self.button.action.label)
        return f"{label}: {self.name}" if self.button.action.has_value else label

    def entry(self, outcome: str, limit: int) -> str:
        """Return the entry for the admin's log, cut at ``limit`` characters before the reason."""
        reason = f" {_('Reason: %s') % self.reason}" if self.reason else ""
        return visible(f"{self.subject} – {outcome}")[:limit] + reason
