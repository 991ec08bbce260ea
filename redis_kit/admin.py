"""The admin of the app: it registers the dashboard and, if there are tasks, the schedules."""

from django.contrib import admin

from redis_kit.dashboard.site import DashboardAdmin
from redis_kit.models import Dashboard, Schedule
from redis_kit.queues import framework

admin.site.register(Dashboard, DashboardAdmin)
if framework.FOUND:
    from redis_kit.queues.admin import ScheduleAdmin

    admin.site.register(Schedule, ScheduleAdmin)
