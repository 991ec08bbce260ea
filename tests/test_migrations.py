"""The migration works on each database, from nothing and back."""

from itertools import chain

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection


def test_names_of_tables_constraints_and_indexes_differ():
    # In PostgreSQL tables share a name space with indexes, and with those of unique constraints.
    models = apps.get_app_config("redis_kit").get_models(include_auto_created=True)
    tables = [model._meta.db_table for model in models]
    rules = chain.from_iterable((*model._meta.constraints, *model._meta.indexes) for model in apps.get_models())
    names = [*tables, *(rule.name for rule in rules)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.django_db(transaction=True)
def test_migration_leads_to_no_table_and_back():
    tables = set(connection.introspection.table_names())
    assert "redis_kit_signinday" in tables
    call_command("migrate", "redis_kit", "zero", verbosity=0)
    assert not [name for name in connection.introspection.table_names() if name.startswith("redis_kit_")]
    call_command("migrate", "redis_kit", verbosity=0)
    assert set(connection.introspection.table_names()) == tables
    call_command("makemigrations", "redis_kit", check_changes=True, dry_run=True, verbosity=0)
