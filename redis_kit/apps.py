"""The Django app: registers checks and lets each component get ready. Opens no socket."""

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class RedisKitConfig(AppConfig):
    """Redis for Django beyond caching."""

    name = "redis_kit"
    verbose_name = _("Redis")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, make logs safe, and call each component's ready()."""
        from redis_kit.core.checks.configuration import check_deployment, check_settings
        from redis_kit.core.component import components
        from redis_kit.core.errors import ConfigurationError
        from redis_kit.core.logs.filters import protect

        protect()
        checks.register(check_settings, "redis_kit")
        checks.register(check_deployment, "redis_kit", deploy=True)
        try:
            loaded = components()
        except ConfigurationError:
            return  # check_settings reports the error with the name of the option
        for component in loaded:
            component.ready()
