"""The admin of the app: it registers the dashboard, snapshots of page views and, if there are tasks, the schedules."""

from django.contrib import admin

from redis_kit.dashboard.site import DashboardAdmin
from redis_kit.models import Dashboard, PageViewSnapshot, Schedule
from redis_kit.pageviews.database.admin import PageViewSnapshotAdmin
from redis_kit.queues import framework

admin.site.register(Dashboard, DashboardAdmin)
admin.site.register(PageViewSnapshot, PageViewSnapshotAdmin)
if framework.FOUND:
    from redis_kit.queues.admin import ScheduleAdmin

    admin.site.register(Schedule, ScheduleAdmin)
