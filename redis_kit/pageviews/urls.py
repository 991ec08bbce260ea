"""The URLs of page views: ``path("", include("redis_kit.pageviews.urls"))``."""

from django.urls import path

from redis_kit.pageviews.http.beacon import ROUTE, beacon

urlpatterns = [path("page-view/", beacon, name=ROUTE)]
