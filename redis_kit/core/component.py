"""A component: one feature of the kit, named by its dotted path."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

from django.core.checks import CheckMessage
from django.utils.module_loading import import_string

from redis_kit.components import BUILTIN
from redis_kit.core import conf
from redis_kit.core.errors import ConfigurationError
from redis_kit.core.panels import Panel, Text
from redis_kit.core.settings import KitSettings


class Component:
    """The base of components: the settings, panels and checks of a feature."""

    #: The section of its options; None if it has none.
    settings: ClassVar[type[conf.Section] | None] = None
    #: Dotted paths of the dashboard's panels.
    panels: ClassVar[tuple[str, ...]] = ()
    #: The title of its panels in the dashboard's menu, with those of other components of the same group. By default the
    #: title of the first one.
    group: ClassVar[Text] = ""
    #: Dotted paths of subclasses of MetricSource.
    metrics: ClassVar[tuple[str, ...]] = ()
    #: The Redis commands of its calls, with spaces between. ``rk_doctor`` names those that the user may not run.
    commands: ClassVar[str] = ""
    #: Whether the label is all that stands in the braces of its keys, as in ``rk:{logs}:``, so that they share a slot.
    one_slot: ClassVar[bool] = False
    #: Codenames and names of permissions of the app ``redis_kit``, for the panels of built-in components. Panels of
    #: ``EXTRA_COMPONENTS`` use permissions of the project's models. Names are in English, as Django's are.
    permissions: ClassVar[tuple[tuple[str, str], ...]] = ()

    @property
    def label(self) -> str:
        """Return the name used in keys and urls, such as ``locks``: that of the section, else that of the class."""
        return (self.settings.name if self.settings else type(self).__name__).lower()

    def ready(self) -> None:
        """Connect signals; called once when Django has loaded. Must not talk to a server."""

    def checks(self) -> Iterable[CheckMessage]:
        """Return messages for ``manage.py check`` beyond those about settings. Must not talk to a server.

        Read settings by ``conf.valid_options()``: also called if some are wrong. A RedisKitError is then left out.
        """
        return ()

    def forget(self) -> None:
        """Forget what a test left in this process, such as leases; called between two tests of a project.

        State that depends on the server is forgotten by ``conf.on_change()``, under ``override_settings`` too.
        """

    def load_panels(self) -> list[Panel]:
        """Return the dashboard panels, in their order."""
        return [import_string(path)() for path in self.panels]

    def load_metrics(self) -> list[Any]:
        """Return the sources of metrics."""
        return [import_string(path)() for path in self.metrics]


def builtin_permissions() -> list[tuple[str, str]]:
    """Return the permissions of the built-in components, by codename."""
    return sorted(permission for path in BUILTIN for permission in _import(path).permissions)


def components() -> tuple[Component, ...]:
    """Return the components of the kit and those in ``EXTRA_COMPONENTS``, in that order."""
    # Not through the section: one wrong option must not hide the problems of the others.
    extra = conf.configured().get("EXTRA_COMPONENTS", ())
    for problem in conf.mismatches(KitSettings, "REDIS_KIT", {"EXTRA_COMPONENTS": extra}):
        raise ConfigurationError(problem.text)
    return _load((*BUILTIN, *extra))


@lru_cache(maxsize=8)
def _load(paths: tuple[str, ...]) -> tuple[Component, ...]:
    return tuple(_import(path)() for path in paths)


def _import(path: str) -> type[Component]:
    try:
        component = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"REDIS_KIT['EXTRA_COMPONENTS'] names {path!r}: {error}.") from error
    if not (isinstance(component, type) and issubclass(component, Component)):
        raise ConfigurationError(f"REDIS_KIT['EXTRA_COMPONENTS'] names {path!r}, which is not a Component class.")
    return component
