"""The rows that locks guard, as a worker writes them."""

from typing import Any

from django.db import models

from redis_kit.locks import FencedModelMixin, StaleFence, fenced


class Guarded(FencedModelMixin):
    """A row that only the newest holder of its lock may change."""

    name = models.TextField(primary_key=True)
    writer = models.TextField(default="")

    class Meta:
        app_label = "histories"
        db_table = "guarded"

    def __str__(self) -> str:
        return self.name


class Rows:
    """Writes a row under a lease."""

    def write(self, *, name: str, lease: Any, writer: str) -> bool:
        """Change it; False where a later holder has changed it before."""
        try:
            return bool(fenced(Guarded.objects.filter(pk=name), lease).update(writer=writer))
        except StaleFence:
            return False
