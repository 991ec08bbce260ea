"""Public names of a package that are imported at their first use.

Django imports every component when it starts, and the client library costs more than the rest of the start.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, modules: Mapping[str, Iterable[str]], *, home: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, given which of its modules has which public names (PEP 562).

    ``home`` is the package of these modules, if it is another one. ``dir()`` imports none of them.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{home or package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, listed
