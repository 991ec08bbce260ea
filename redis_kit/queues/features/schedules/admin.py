"""The admin of schedules. Imports no Redis client, because Django imports it at start-up."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.errors import GiveUp, InvalidSchedule, UnknownTask
from redis_kit.queues.models import Schedule


class OptionalJSONField(forms.JSONField):
    """Shows nothing where Django's field shows ``null``."""

    def prepare_value(self, value: Any) -> Any:
        """Return the text of the value."""
        return "" if value is None else super().prepare_value(value)


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]  # has no parameters at run time
    """Refuses what periodic() would refuse, with the same words."""

    class Meta:
        field_classes: ClassVar = {"args": OptionalJSONField, "kwargs": OptionalJSONField}

    def clean(self) -> dict[str, Any]:
        """Check the schedule that the fields make, with those of the code, and that its task can be called."""
        from redis_kit.queues.features.schedules import rows
        from redis_kit.queues.tasks import discovery

        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        row = Schedule(**cleaned)
        try:
            discovery.discover()
            rows.check(row)
        except InvalidSchedule as error:
            self.add_error(error.field if error.field in self.fields else None, str(error))
        except UnknownTask as error:
            self.add_error("task", str(error))
        except ConfigurationError as error:
            self.add_error("cron", str(error))
        except GiveUp as error:
            self.add_error("kind", str(error))
        return cleaned


class ScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Schedules of the database, which may change those of the code."""

    form = ScheduleForm
    list_display = ("name", "when", "task", "enabled", "changed")
    list_filter = ("enabled", "kind")
    list_per_page = 100
    search_fields = ("name", "task")
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("Task"), {"fields": ("kind", "task", "args", "kwargs", "queue")}),
        (_("Time"), {"fields": ("every", "cron", "timezone", "at", "start", "end", "jitter")}),
        (_("If it comes at a bad time"), {"fields": ("overlap", "catch_up")}),
    )

    def formfield_for_choice_field(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Say in words what an empty choice means."""
        if db_field.name == "overlap":
            kwargs["choices"] = [("", _("as in the code")), *Schedule.Overlap.choices]
        return super().formfield_for_choice_field(db_field, request, **kwargs)

    @admin.display(description=_("when"))
    def when(self, row: Schedule) -> str:
        """Return when a schedule ticks, in words."""
        from redis_kit.queues.features.schedules import rows, words

        if not (row.every or row.cron or row.at):
            return str(_("as in the code"))
        try:
            return words.when(rows.made(Schedule(name=row.name, task="-", **times(row))))
        except (InvalidSchedule, ConfigurationError) as error:
            return str(error)


def times(row: Schedule) -> dict[str, Any]:
    """Return the fields of a row that say when."""
    from redis_kit.queues.features.schedules.definition import WHENS

    return {name: value for name in (*WHENS, "timezone") if (value := getattr(row, name)) not in (None, "")}
