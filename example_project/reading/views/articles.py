"""Articles and the library: pages with counted views, and votes with a throttle."""

from urllib.parse import unquote

from django.conf import settings
from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from example_project.reading.models import Article, ArticleIndex
from example_project.reading.views.letters import DELAYS
from redis_kit.bloom import BloomFilter, get_object_or_404
from redis_kit.pageviews import PageViews, page
from redis_kit.throttling import throttle

READING = "300/m"  # pages of the library for one address
QUICK_READING = "1/m"  # articles for one reader; in shadow mode, so that it refuses nothing and proposes a rate
read_articles = BloomFilter("read articles", capacity=100_000)  # who has read what
MAX_NAME = 500  # bytes of a page's name


@require_safe
@page("/")
def article_list(request: HttpRequest) -> HttpResponse:
    """Show all articles with today's figures."""
    articles = list(Article.objects.all())
    read = read_articles.contains_many(f"{request.user.pk} {article.slug}" for article in articles)
    shelf = [
        {"article": article, "read": is_read} | figures(article.slug)
        for article, is_read in zip(articles, read, strict=True)
    ]
    return render(request, "reading/articles.html", {"shelf": shelf})


@require_safe
@throttle(READING, key="ip", name="library")
@page("search")
def search(request: HttpRequest) -> HttpResponse:
    """Show the articles that match a query."""
    query = request.GET.get("q", "").strip()
    return render(request, "reading/search.html", {"query": query, "result": ArticleIndex.search(query, fuzzy=True)})


@require_safe
@throttle(QUICK_READING, key="user_or_ip", name="articles", shadow=True)
@page(lambda request, slug: ("article", slug))
def article(request: HttpRequest, slug: str) -> HttpResponse:
    """Show an article and its forms."""
    shown = get_object_or_404(Article, slug=slug)
    if request.user.is_authenticated:
        read_articles.add(f"{request.user.pk} {slug}")
    context = {"article": shown, "delays": DELAYS, "vote_rate": settings.READING_VOTE_RATE}
    return render(request, "reading/article.html", context | figures(slug))


@require_POST
@throttle(settings.READING_VOTE_RATE, key="user_or_ip", name="votes")
def vote(request: HttpRequest, slug: str) -> HttpResponse:
    """Count a vote for an article."""
    Article.objects.filter(slug=slug).update(votes=F("votes") + 1)
    messages.success(request, "Your vote was counted.")
    return redirect("article", slug)


@require_safe
@throttle(READING, key="ip", name="library")
@page(lambda request, path: shelf(path))
async def library(request: HttpRequest, path: str) -> HttpResponse:
    """Show a page for any other path. This view is async, to show that throttles and page views work there too."""
    title = unquote(path).strip("/").rpartition("/")[2].replace("-", " ").replace("_", " ") or "Untitled"
    (today,) = await PageViews(shelf(path)).aby_day()
    # The user is loaded here, since a template can't await the database.
    context = {"title": title[:1].upper() + title[1:], "user": await request.auser()}
    return render(request, "reading/library.html", context | {"views": today.views, "visitors": today.visitors})


def shelf(path: str) -> str:
    """Return the name under which a page of the library is counted, cut at 500 bytes."""
    return f"/{path}".encode()[:MAX_NAME].decode(errors="ignore")


def figures(slug: str) -> dict[str, int]:
    """Return today's views and visitors of an article, in one round trip."""
    (today,) = PageViews("article", slug).by_day()
    return {"views": today.views, "visitors": today.visitors}
