"""Columns of text that databases compare as it is. Imports no Redis client, because models import it."""

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import lookups


class _Exact(models.Field):  # type: ignore[type-arg]  # has no parameters at run time
    """Text with its case and accents, on MySQL too, whose default collations ignore both."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        """Return the type of the column, with a collation on MySQL; it brings the character set utf8mb4."""
        parameters: Any = super().db_parameters(connection)
        if connection.vendor == "mysql":
            parameters["collation"] = "utf8mb4_bin"
        return parameters


@_Exact.register_lookup
class _Contains(lookups.IContains):
    """The search of the admin, which minds no case."""

    def as_mysql(self, compiler: Any, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return the condition, with a collation that stands above the column's."""
        sql, parameters = self.as_sql(compiler, connection)
        return f"{sql} COLLATE utf8mb4_general_ci", parameters


class ExactCharField(_Exact, models.CharField):  # type: ignore[type-arg]
    """A CharField whose values differ by each character, but on MySQL not by spaces at the end."""


class ExactTextField(_Exact, models.TextField):  # type: ignore[type-arg]
    """A TextField whose values differ by each character, but on MySQL not by spaces at the end."""
