"""A model whose rows have a fence. It has its own module because a model can't be imported before the apps."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import models, router, transaction

from redis_kit.locks.fencing.queryset import checked, fenced

if TYPE_CHECKING:
    from redis_kit.locks.leases.lease import Lease


class FenceField(models.BigIntegerField):  # type: ignore[type-arg]  # at run time it takes no arguments
    """A column that a row keeps when an instance is saved: one that was loaded before must not set the fence back."""

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Return a plain column, so that migrations need no kit."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.BigIntegerField", list(args), dict(kwargs)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the value of a new row, or the column itself."""
        return super().pre_save(model_instance, add) if add else models.F(self.attname)


class FencedModelMixin(models.Model):
    """A model with a fence for each row, written by ``fenced()`` and ``save_fenced()`` alone."""

    fence = FenceField(default=0, editable=False)

    class Meta:
        abstract = True

    def save_fenced(self, lease: "Lease", *, update_fields: Iterable[str] | None = None) -> None:
        """Save the instance, unless its row was changed under a newer lease. See fenced().

        Calls save(), with its signals. A new instance is inserted, any other one only updated: Django's DatabaseError
        if its row was deleted, so that no late holder restores it. Raises StaleFence and changes nothing if the row
        has a newer fence. Two statements before those of save(), in a transaction.
        """
        checked(lease)
        is_new = self._state.adding and update_fields is None
        using = router.db_for_write(type(self), instance=self)
        with transaction.atomic(using=using):
            if is_new:
                self.fence = lease.fence
            else:
                fenced(type(self)._base_manager.using(using).filter(pk=self.pk), lease).update()
            self.save(using=using, force_insert=is_new, force_update=not is_new, update_fields=update_fields)
        self.fence = lease.fence

    async def asave_fenced(self, lease: "Lease", *, update_fields: Iterable[str] | None = None) -> None:
        """See save_fenced()."""
        await sync_to_async(self.save_fenced)(lease, update_fields=update_fields)
