"""Pages of many kinds."""

from types import SimpleNamespace

from asgiref.sync import iscoroutinefunction
from django.http import Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.template import RequestContext, Template
from django.urls import include, path, re_path
from django.utils.decorators import sync_and_async_middleware
from django.views import View
from django.views.decorators.cache import never_cache

from redis_kit.pageviews import PageViewMixin, page

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


@sync_and_async_middleware
def signed_in_as(get_response):
    """Let the header ``As`` say who the user is, and whether staff, instead of a database."""

    def sign_in(request):
        name, _, rank = request.headers.get("As", "").partition(" ")
        request.session = SimpleNamespace(session_key=f"session of {name}" if name else None)
        request.user = SimpleNamespace(pk=name or None, is_staff=rank == "staff")

        async def auser():
            return request.user

        request.auser = auser

    if iscoroutinefunction(get_response):

        async def middleware(request):
            sign_in(request)
            return await get_response(request)

    else:

        def middleware(request):
            sign_in(request)
            return get_response(request)

    return middleware


def flat_pages(get_response):
    """Answer paths that no URL pattern matches, as the middleware of flat pages does."""

    def middleware(request):
        response = get_response(request)
        is_flat = response.status_code == 404 and request.path.startswith("/flat/")
        return HttpResponse("<p>Flat") if is_flat else response

    return middleware


def html(request, **kwargs):
    return HttpResponse("<p>Hello")


async def html_async(request, **kwargs):
    return HttpResponse("<p>Hello")


def with_headers(request, **kwargs):
    """Answer with the headers that the query has."""
    return HttpResponse("<p>Hello", headers=request.GET.dict())


def missing(request):
    raise Http404


def failing(request):
    return HttpResponse(status=500)


@never_cache
@page("front")
def named(request):
    return HttpResponse("<p>Hello")


@page(lambda request, pk: ("post", pk))
async def post(request, pk):
    return HttpResponse("<p>Hello")


@page(None)
def uncounted(request):
    return HttpResponse("<p>Hello")


@page(lambda request: "x" * 1000)
def misnamed(request):
    return HttpResponse("<p>Hello")


@page(lambda request: 1 / 0)
def broken(request):
    return HttpResponse("<p>Hello")


class Shop(PageViewMixin, View):
    page = "shop"

    def get(self, request, *args):
        return HttpResponse("<p>Hello")


@page("plain")
class Plain(View):
    def get(self, request):
        return HttpResponse("<p>Hello")


class Article(PageViewMixin, View):
    page, page_key = "article", "slug"

    def get(self, request, slug):
        return HttpResponse("<p>Hello")


class Archive(PageViewMixin, View):
    """A page that is named by a positional argument of its URL, which a view has after setup()."""

    def get_page(self, request, *args, **kwargs):
        return "archive", self.args[0]

    def get(self, request, year):
        return HttpResponse("<p>Hello")


@page(lambda request, pk: ("reported", pk), beacon=True)
def reported(request, pk):
    return scripted(request)


def scripted(request):
    html = "{% load redis_kit_pageviews %}<p>Hello{% page_view_beacon %}"
    return HttpResponse(Template(html).render(RequestContext(request, {"request": request})))


class ReportedShop(PageViewMixin, View):
    page, page_beacon = "reported-shop", True

    def get(self, request):
        return scripted(request)


app_name = "blog"
blog = ([path("latest/", html, name="latest")], "blog")
urlpatterns = [
    path("", html),
    path("html/<int:number>/", html, name="by-name"),
    path("async/", html_async, name="async"),
    re_path(r"^(?:old|older)/$", html),
    path("blog/", include(blog)),
    path("named/", named),
    path("post/<int:pk>/", post),
    path("uncounted/", uncounted),
    path("misnamed/", misnamed),
    path("broken/", broken),
    path("shop/", Shop.as_view()),
    path("plain/", Plain.as_view()),
    path("market/", Shop.as_view(page="market")),
    path("article/<slug:slug>/", Article.as_view()),
    re_path(r"^archive/([0-9]+)/$", Archive.as_view()),
    re_path(r"^shop/([0-9]+)/$", Shop.as_view()),
    path("json/", lambda request: JsonResponse({})),
    path("with-headers/", with_headers, name="with-headers"),
    path("stream/", lambda request: StreamingHttpResponse(iter(["<p>Hello"])), name="stream"),
    path("missing/", missing),
    path("", include("redis_kit.pageviews.urls")),
    path("reported/<int:pk>/", reported),
    path("reported-shop/", ReportedShop.as_view()),
    path("unreported/", scripted, name="unreported"),
    path("uncounted-script/", page(None)(lambda request: scripted(request))),
    path("failing/", failing),
    path("empty/", lambda request: HttpResponse(status=204)),
    path("changed/", lambda request: HttpResponse(status=304)),
    path("login/", lambda request: HttpResponse(status=302, headers={"Location": "/"})),
]
