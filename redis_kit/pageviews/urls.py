"""The URLs of page views: ``path("", include("redis_kit.pageviews.urls"))``."""

from django.urls.resolvers import RoutePattern

from redis_kit.pageviews.beacon import ROUTE, BeaconPattern, beacon

urlpatterns = [BeaconPattern(RoutePattern("page-view/", name=ROUTE, is_endpoint=True), beacon, name=ROUTE)]
