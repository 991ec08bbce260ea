"""What is popular now: a page that browsers keep, whose views a script reports, and a box for other pages."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from example_project.reading.models import Article
from redis_kit.pageviews import PageViews, PopularView, page


@require_safe
@cache_control(private=True, max_age=30)
@page("popular", beacon=True)
def popular_now(request: HttpRequest) -> HttpResponse:
    """Show the most read articles. A browser keeps the page for a while, so a script reports its views."""
    online = PageViews.site().online()
    return render(request, "reading/popular.html", {"articles": Article.objects.all(), "online": online})


class PopularArticles(PopularView):
    """The same as a box, for a page of any other site."""

    model, page, key, n = Article, "article", "slug", 3
