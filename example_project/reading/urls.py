"""The URLs of the reading room."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from example_project.reading.views import articles, checkin, letters, popular, report, talk

urlpatterns = [
    path("", articles.article_list, name="articles"),
    path("search/", articles.search, name="search"),
    path("read/<slug:slug>/", articles.article, name="article"),
    path("read/<slug:slug>/vote/", articles.vote, name="vote"),
    path("read/<slug:slug>/send/", letters.send, name="send"),
    path("read/<slug:slug>/remind/", letters.remind, name="remind"),
    path("popular/", popular.popular_now, name="popular"),
    path("popular/box/", popular.PopularArticles.as_view(), name="popular-box"),
    path("letters/", letters.letters, name="letters"),
    path("check-in/", checkin.check_in, name="check-in"),
    path("check-in/<int:year>/<int:month>/", checkin.check_in, name="check-in-month"),
    path("talk/", talk.talk, name="talk"),
    path("talk/feed/", talk.TalkFeed.as_view(), name="talk-feed"),
    path("bell/feed/", talk.BellFeed.as_view(), name="bell-feed"),
    path("report/", report.report, name="report"),
    path("log-in/", LoginView.as_view(template_name="reading/log_in.html"), name="log-in"),
    path("log-out/", LogoutView.as_view(), name="log-out"),
    path("<path:path>", articles.library, name="library"),
]
