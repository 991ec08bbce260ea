"""The admin of the app: it registers the dashboard, and what features of the queues bring."""

from django.contrib import admin

from redis_kit.dashboard.site import DashboardAdmin
from redis_kit.models import Dashboard
from redis_kit.queues.engine.feature import features

admin.site.register(Dashboard, DashboardAdmin)
for feature in features():
    feature.register_admin(admin.site)
