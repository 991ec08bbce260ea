"""The admin of the app: it registers the dashboard."""

from django.contrib import admin

from redis_kit.dashboard.site import DashboardAdmin
from redis_kit.models import Dashboard

admin.site.register(Dashboard, DashboardAdmin)
