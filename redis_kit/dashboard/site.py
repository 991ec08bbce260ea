"""The dashboard's pages in the Django admin."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag, urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from redis_kit.core import conf
from redis_kit.core.errors import RedisKitError
from redis_kit.core.panels import Panel, Viewer
from redis_kit.dashboard import reading
from redis_kit.dashboard.component import DashboardSettings
from redis_kit.dashboard.confirmation import Confirmation
from redis_kit.dashboard.drawing import Offer, offers_for, search_of
from redis_kit.dashboard.text import cell, visible

PACES = {2, 5, 10, 30}  # seconds between refreshes that a viewer can choose
SENTENCE = 1000  # characters of a message


class DashboardAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # has no parameters at run time
    """The pages over all components: an overview, a page for each panel, a fragment of each, and the buttons."""

    def get_urls(self) -> list[URLPattern]:
        """Return the routes. The name ``..._change`` makes the admin's log link to a panel's page."""

        def route(where: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
            return path(where, self.admin_site.admin_view(view), name=f"redis_kit_dashboard_{name}")

        return [
            route("", require_safe(self.overview), "changelist"),
            route("fragment/", require_safe(self.overview_fragment), "overview_fragment"),
            route("<str:slug>/", require_safe(self.panel), "change"),
            route("<str:slug>/fragment/", require_safe(self.panel_fragment), "panel_fragment"),
            route("<str:slug>/do/<str:name>/", require_POST(self.act), "act"),
        ]

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Say whether this user may look; being staff is not enough."""
        return conf.section(DashboardSettings).ENABLED and request.user.has_perm("redis_kit.view_dashboard")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Say whether the admin's index shows the dashboard."""
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nothing can be added."""
        return False

    has_change_permission = has_delete_permission = has_add_permission

    def overview(self, request: HttpRequest) -> HttpResponse:
        """Show all components' figures and the first things of each."""
        fragment = self._overview(request)
        return self._page(
            request, "overview", {"title": _("Redis"), "fragment": fragment}, self._url("overview_fragment")
        )

    def overview_fragment(self, request: HttpRequest) -> HttpResponse:
        """Answer with what changes on the overview; 304 when nothing did."""
        return _conditional(request, self._overview(request))

    def panel(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Show all that one panel has, and its actions."""
        panel = self._panel(request, slug)
        offers, search = self._offers(request, panel), search_of(panel)
        context = {
            "title": cell(panel.title).text,
            "fragment": self._content(panel, offers),
            "panel": panel,
            "offers": offers,
            "fields": [offer for offer in offers if not offer.of_rows],
            "search": search,
        }
        return self._page(request, "panel", context, self._url("panel_fragment", panel.slug) + _asked(panel))

    def panel_fragment(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Answer with what changes on a panel's page; 304 when nothing did."""
        panel = self._panel(request, slug)
        return _conditional(request, self._content(panel, self._offers(request, panel)))

    def act(self, request: HttpRequest, slug: str, name: str) -> HttpResponse:
        """Carry out a panel's action, after a confirmation where it asks for one, and log it."""
        panel = self._panel(request, slug)
        action = panel.actions().get(name)
        if action is None:
            raise Http404(f"The panel {panel.slug!r} has no action {name!r}.")
        if not request.user.has_perm(action.permission):
            raise PermissionDenied
        try:
            url = self._url("act", panel.slug, name) + _asked(panel)
            confirmation = Confirmation(Offer(name, action, url), request.POST)
        except RedisKitError as error:
            self.message_user(request, visible(str(error))[:SENTENCE], messages.ERROR)
            return redirect(self._back(panel))
        if not confirmation.given:
            return self._confirm(request, panel, confirmation)
        self._carry_out(request, panel, confirmation)
        return redirect(self._back(panel))

    def _confirm(self, request: HttpRequest, panel: Panel, confirmation: Confirmation) -> HttpResponse:
        title = f"{cell(panel.title).text}: {confirmation.offer.label.text}"
        context = self._context(request, title=title, panel=panel, confirmation=confirmation, back=self._back(panel))
        status = 400 if confirmation.wrong else 200
        return TemplateResponse(request, "redis_kit/dashboard/confirm.html", context, status=status)

    def _carry_out(self, request: HttpRequest, panel: Panel, confirmation: Confirmation) -> None:
        try:
            sentence = str(getattr(panel, confirmation.offer.name)(*confirmation.arguments))
        except RedisKitError as error:
            self.message_user(request, visible(str(error))[:SENTENCE], messages.ERROR)
            if not getattr(error, "indeterminate", False):
                return
            sentence = _("The outcome is unknown.")
        else:
            self.message_user(request, visible(sentence)[:SENTENCE], messages.SUCCESS)
        entry = self.model(slug=panel.slug, title=cell(panel.title).text)
        self.log_change(request, entry, confirmation.entry(sentence, SENTENCE))

    def _overview(self, request: HttpRequest) -> str:
        self._require(request)
        found = reading.read(self._panels(Viewer(request.user.has_perm)))
        readings = [(one, self._url("change", one.panel.slug)) for one in found]
        alarms = [(one, url, figure) for one, url in readings for figure in one.figures if figure.alarm]
        context = {"readings": readings, "alarms": alarms, "base": self._url("changelist")}
        return render_to_string("redis_kit/dashboard/_overview.html", context)

    def _content(self, panel: Panel, offers: Sequence[Offer]) -> str:
        (found,) = reading.read([panel], lambda panel: {offer.name: offer for offer in offers})
        context = {"reading": found, "base": self._url("changelist")}
        return render_to_string("redis_kit/dashboard/_panel.html", context)

    def _offers(self, request: HttpRequest, panel: Panel) -> list[Offer]:
        asked = _asked(panel)
        return offers_for(
            panel.actions(), may=request.user.has_perm, url=lambda name: self._url("act", panel.slug, name) + asked
        )

    def _back(self, panel: Panel) -> str:
        return self._url("change", panel.slug) + _asked(panel)

    def _panel(self, request: HttpRequest, slug: str) -> Panel:
        self._require(request)
        for panel in self._panels(Viewer(request.user.has_perm, request.GET.dict())):
            if slug in (panel.slug, quote(panel.slug)):
                return panel
        raise Http404(f"There is no panel {slug!r}.")

    def _panels(self, viewer: Viewer) -> list[Panel]:
        panels = list(reading.panels())
        for panel in panels:
            panel.viewer = viewer
        return panels

    def _url(self, name: str, *args: str) -> str:
        return reverse(f"admin:redis_kit_dashboard_{name}", args=args, current_app=self.admin_site.name)

    def _require(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any], live: str) -> HttpResponse:
        refresh = conf.section(DashboardSettings).REFRESH
        context |= {"live": live, "etag": _etag(context["fragment"]), "refresh": refresh}
        context |= {"paces": sorted(PACES | {refresh})}
        return TemplateResponse(request, f"redis_kit/dashboard/{name}.html", self._context(request, **context))

    def _context(self, request: HttpRequest, *, panel: Panel | None = None, **context: Any) -> dict[str, Any]:
        tabs = [
            (cell(one.title), self._url("change", one.slug), bool(panel and panel.slug == one.slug))
            for one in reading.panels()
        ]
        here = {"tabs": tabs, "overview": self._url("changelist"), "opts": self.opts, "panel": panel}
        here |= {"here": panel and cell(panel.title)}
        return {**self.admin_site.each_context(request), **here, **context}


def _etag(text: str) -> str:
    return quote_etag(blake2b(text.encode(), digest_size=12).hexdigest())


def _conditional(request: HttpRequest, text: str) -> HttpResponse:
    response = HttpResponse(text, headers={"ETag": _etag(text)})
    return get_conditional_response(request, etag=_etag(text), response=response) or response


def _asked(panel: Panel) -> str:
    """Return what its viewer searched for, as it stands in an address: an action leads back to where it was asked."""
    search, given = search_of(panel), panel.viewer.asked
    asked = {field.name: field.value for field in search.fields if field.name in given} if search else {}
    return f"?{urlencode(asked)}" if asked else ""
