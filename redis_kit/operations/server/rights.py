"""The rights of a connection's user: the commands and keys of each component that it lacks."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from redis_kit.core import conf, scripts
from redis_kit.core.component import components
from redis_kit.core.settings import KitSettings
from redis_kit.core.steps import Call

LIST_MISSING = scripts.load(__package__, "list_missing_rights")


class MissingRights(NamedTuple):
    """The rights that the user lacks for a component: some ``commands``, or its ``keys``, given as a pattern."""

    component: str
    keys: str
    commands: tuple[str, ...]


def asking() -> dict[str, Call]:
    """Return the step that asks for the rights of each component, by its name. It runs with the source, as EVAL."""
    return {
        component.label: Call(
            *LIST_MISSING([], [f"{key_prefix(component.label)}:x}}", *component.commands.split()]).with_source()
        )
        for component in components()
        if component.commands
    }


def missing_rights(replies: Mapping[str, Any]) -> list[MissingRights]:
    """Return the rights that are missing; none for replies that are None."""
    missing = []
    with_channels = {each.label for each in components() if "ssubscribe" in each.commands.split()}
    for component, reply in replies.items():
        has_keys, commands = reply or (1, ())
        if not has_keys or commands:
            keys = "" if has_keys else f"~{key_prefix(component)}*"
            if keys and component in with_channels:
                keys += f" &{key_prefix(component)}*"
            missing.append(MissingRights(component, keys, tuple(name.decode() for name in commands)))
    return missing


def key_prefix(component: str) -> str:
    """Return how the keys and the channels of a component begin."""
    return f"{conf.section(KitSettings).PREFIX}:{{{component}"
