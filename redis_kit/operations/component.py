"""The component of operators: the state of the servers, and the keys there."""

from django.utils.translation import gettext_lazy as _

from redis_kit.core.component import Component
from redis_kit.operations.settings import OperationsSettings


class Operations(Component):
    """The servers themselves, whichever component uses them."""

    settings = OperationsSettings
    panels = (
        "redis_kit.operations.dashboard.keys_page.KeysPanel",
        "redis_kit.operations.dashboard.server_page.ServerPanel",
    )
    group = _("Servers")
    metrics = ("redis_kit.operations.metrics.ServerMetrics",)
    permissions = (
        ("view_keys", "Can view the names of Redis keys"),
        ("view_server", "Can view the state of the Redis servers"),
    )
