"""The site's URLs. Every other path is a page of the library, so that any access log can be replayed."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("language/", include("django.conf.urls.i18n")),
    path("", include("redis_kit.pageviews.urls")),
    path("", include("example_project.reading.urls")),
]
