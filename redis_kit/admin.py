"""The admin of the app: it registers the dashboard, snapshots of page views, and what features of the queues bring."""

from django.contrib import admin

from redis_kit.dashboard.site import DashboardAdmin
from redis_kit.models import Dashboard, PageViewSnapshot
from redis_kit.pageviews.database.admin import PageViewSnapshotAdmin
from redis_kit.queues.engine.feature import features

admin.site.register(Dashboard, DashboardAdmin)
admin.site.register(PageViewSnapshot, PageViewSnapshotAdmin)
for feature in features():
    feature.register_admin(admin.site)
