"""Points at which tests have a process die, as if the machine had lost power, to show that no job is lost there."""

from collections.abc import Callable

_NOTHING: dict[str, None] = {}  # its get() is a function that does nothing, and costs as little as one can

#: Called by the worker at each point with its name; see tests/fixtures/failpoints.py.
reach: Callable[[str], object] = _NOTHING.get
