"""The stage of a run: a server, a folder, and settings that lead there. All that it started has ended at its end."""

import contextlib
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from tests.fixtures.fork_server import PythonProcess, start_python
from tests.fixtures.process import UNBOUNDED, Server
from tests.fixtures.proxy import Proxy

PATIENT = {"CONNECT_TIMEOUT": 2.0, "READ_TIMEOUT": 2.0}  # seconds, on a machine that does other things, too
SETTINGS = "tests.chaos.settings"
# "none" loses all with its server, "kept" has given all to the system before it answers, "always" to the disk.
DISKS: dict[str, Sequence[str]] = {
    "none": ("--maxmemory", "0"),
    "kept": UNBOUNDED,
    "always": ("--appendfsync", "always"),
}


class Stage:
    """See stage()."""

    def __init__(self, folder: Path, server: Any, kit: dict[str, Any], stack: contextlib.ExitStack) -> None:
        self.folder, self.server, self.kit = folder, server, kit
        self.enter, self.at_the_end = stack.enter_context, stack.callback

    def proxy(self) -> Proxy:
        """Return a proxy before the server."""
        proxy = Proxy(self.server.port)
        self.at_the_end(proxy.stop)
        return proxy

    def connect(self, connection: dict[str, Any]) -> None:
        """Have this process use another way to the server."""
        self.kit["CONNECTIONS"]["default"] = {**connection, "TEST": True}

    def environment(self, **more: str) -> dict[str, str]:
        """Return what tells another process the settings, and variables beside that."""
        return {"REDIS_KIT": json.dumps(self.kit), "DJANGO_SETTINGS_MODULE": SETTINGS, **more}

    def start(self, function: Callable[..., object], *arguments: Any, **environment: str) -> PythonProcess:
        """Start a process that calls a function of a module with these arguments."""
        path = f"{function.__module__}:{function.__name__}"
        command = ["-m", "tests.chaos", "--as", path, json.dumps(arguments)]
        return start_python(command, env={**os.environ, **self.environment(**environment)})


@contextlib.contextmanager
def stage(
    disk: Literal["none", "kept", "always"] = "none",
    *,
    server: Callable[[Path], Any] | None = None,
    arguments: Sequence[str] = (),
    keep: Path | None = None,
    **kit: Any,
) -> Iterator[Stage]:
    """Start a server, and have this process use it, with these options of REDIS_KIT.

    ``server`` makes another one than a single server; ``keep`` is a folder that stays.
    """
    from django.test.utils import override_settings

    from redis_kit.core import connections

    with contextlib.ExitStack() as stack:
        if not keep:
            keep = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos", ignore_cleanup_errors=True)))
        data = {} if disk == "none" else {"persistence": True, "data_dir": keep / "data"}
        made = server(keep) if server else Server(tcp=True, extra_args=(*DISKS[disk], *arguments), **data)
        stack.callback(made.stop)
        connected = {
            "PREFIX": f"c{secrets.token_hex(4)}",
            "CONNECTIONS": {"default": {**made.connection, "TEST": True}},
        }
        found = {**connected, **PATIENT, **kit}
        stack.enter_context(override_settings(REDIS_KIT=found))
        stack.callback(connections.close)
        yield Stage(keep, made, found, stack)


def create_tables(*emptied: Any) -> None:
    """Create all tables, and delete the rows of these models, which another run may have left."""
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    for model in emptied:
        model.objects.all()._raw_delete("default")


def wait_until(condition: Callable[[], object], seconds: float, *, pause: float = 0.05) -> bool:
    """Wait for a condition; False if it did not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
