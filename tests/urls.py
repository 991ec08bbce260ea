"""The routes of the test project; tests with routes of their own override ROOT_URLCONF."""

from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
