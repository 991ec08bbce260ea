"""The dashboard as a component."""

from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.dashboard.settings import DashboardSettings


class Dashboard(Component):
    """All components' figures in the Django admin."""

    settings = DashboardSettings
    panels = ("redis_kit.dashboard.audit_page.AuditPanel",)
    group = _("Servers")
    permissions = (("view_dashboard", "Can view the Redis dashboard"),)
