"""The Celery app of the project."""

from typing import Any

from celery import Celery, _state
from django.utils.module_loading import import_string

from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.settings import QueueSettings

OPTION = "REDIS_KIT['QUEUES']['CELERY_APP']"
HINT = f"Import it in the package of your project, as Celery's guide for Django shows, or name it in {OPTION}."


def project_app() -> Any:
    """Return the app that the setting names, else the one that was loaded. Raises ConfigurationError."""
    if path := conf.section(QueueSettings).CELERY_APP:
        return _named(path)
    app = _state.get_current_app()
    if app.main == "default" and not app.set_as_current:  # Celery made it, as there was none
        raise ConfigurationError(f"There is no Celery app in this process. {HINT}")
    return app


def _named(path: str) -> Any:
    try:
        app = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"{OPTION} is {path!r}, which can't be imported: {error}.") from error
    if not isinstance(app, Celery):
        raise ConfigurationError(f"{OPTION} is {path!r}, which is not a Celery app but {type(app).__name__}.")
    return app
