"""Migrations work on each database: from nothing, from each earlier state, and back."""

from itertools import chain

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

NAMES = [name for app, name in sorted(MigrationLoader(None).disk_migrations) if app == "redis_kit"]


def test_names_of_tables_constraints_and_indexes_differ():
    # In PostgreSQL tables share a name space with indexes, and with those of unique constraints.
    models = apps.get_app_config("redis_kit").get_models(include_auto_created=True)
    tables = [model._meta.db_table for model in models]
    rules = chain.from_iterable((*model._meta.constraints, *model._meta.indexes) for model in apps.get_models())
    names = [*tables, *(rule.name for rule in rules)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("earlier", ["zero", *NAMES[:-1]])
def test_migrations_lead_from_an_earlier_state_to_this_one(earlier):
    tables = set(connection.introspection.table_names())
    assert "redis_kit_signinday" in tables
    call_command("migrate", "redis_kit", earlier, verbosity=0)
    call_command("migrate", "redis_kit", verbosity=0)
    assert set(connection.introspection.table_names()) == tables
    call_command("makemigrations", "redis_kit", check_changes=True, dry_run=True, verbosity=0)
