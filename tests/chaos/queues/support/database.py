"""A database for a history: one in a file, or the one that ``CHAOS_DATABASE`` names."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import OperationalError, connection

SETTINGS = "tests.chaos.settings"
SQLITE = {"OPTIONS": {"timeout": 60, "transaction_mode": "IMMEDIATE"}}


def prepare(folder: Path, server: Any, prefix: str, options: dict[str, Any]) -> None:
    """Set up Django in this process and, by the environment, in those that it starts; create the tables."""
    import django
    from django.core.management import call_command

    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    queues = {**options, "IMPORTS": ["tests.chaos.queues.row_tasks"]}
    kit = {"PREFIX": prefix, "CONNECTIONS": {"default": server.connection}, "QUEUES": queues}
    os.environ["REDIS_KIT"] = json.dumps({**kit, "CONNECT_TIMEOUT": 2.0, "READ_TIMEOUT": 2.0})
    if "CHAOS_DATABASE" not in os.environ:
        file = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "db"), **SQLITE}
        os.environ["CHAOS_DATABASE"] = json.dumps(file)
    django.setup()
    call_command("migrate", "redis_kit", verbosity=0)
    from tests.app.models import Place

    if Place._meta.db_table not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            editor.create_model(Place)
    Place.objects.all()._raw_delete("default")  # other models refer to it, and have no table here


def cut_connections() -> bool:
    """End all other connections, as a restart of the database does; False where it has none, as SQLite."""
    if connection.vendor != "postgresql":
        return False
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
            "current_database()"
        )
    return True
