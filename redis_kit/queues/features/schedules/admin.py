"""The admin of schedules. Imports no Redis client, because Django imports it at start-up."""

import json
import re
from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from redis_kit.core.errors import ConfigurationError
from redis_kit.queues.errors import GiveUp, InvalidSchedule, UnfitArguments, UnknownTask
from redis_kit.queues.models import Schedule

# NUL as json.dumps() writes it, which PostgreSQL refuses, and halves of surrogate pairs, which UTF-8 lacks.
UNSTORABLE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000|[\ud800-\udfff]")
#: What is wrong with a field, whatever the error is. The errors themselves are for developers.
REASONS = {
    "kind": _("Celery can't be used: %(error)s"),
    "task": _("No task of this path is known: %(error)s"),
    "args": _("The task can't be called with these arguments: %(error)s"),
    "kwargs": _("The task can't be called with these arguments: %(error)s"),
    "queue": _("The queue can't have this name: %(error)s"),
    "every": _("Fill in one of these: a number of seconds from 0.1 to 31,622,400, or cron, or a time to run once."),
    "cron": _("Cron can't be used like that: %(error)s"),
    "timezone": _("Cron needs a time zone such as Europe/Berlin: %(error)s"),
    "overlap": _("It is not known when jobs of this task end. Choose to run it beside the running job."),
    "catch_up": _("Enter a whole number from 0 to 100."),
    "jitter": _("Enter a number of seconds from 0 to 86,400, less than the time between two ticks."),
    "end": _("The end must be later than the start."),
}
#: The fields that other errors are about.
FIELDS = {UnfitArguments: "args", UnknownTask: "task", ConfigurationError: "cron", GiveUp: "kind"}
PAST = timedelta(seconds=30)  # "Now" was clicked that long ago at most


class _OptionalJSONField(forms.JSONField):
    """Shows nothing where Django's field shows ``null``, and takes no text that databases refuse."""

    def to_python(self, value: Any) -> Any:
        made = super().to_python(value)
        if UNSTORABLE.search(json.dumps(made, ensure_ascii=False)):
            raise forms.ValidationError(_("\\u0000 and halves of surrogate pairs can't be stored."))
        return made

    def prepare_value(self, value: Any) -> Any:
        text = "" if value is None else super().prepare_value(value)
        return text.encode("utf-8", "backslashreplace").decode()


class ScheduleForm(forms.ModelForm):  # type: ignore[type-arg]  # has no parameters at run time
    """Refuses what periodic() would refuse, and a time to run once that has passed."""

    class Meta:
        field_classes: ClassVar = {"args": _OptionalJSONField, "kwargs": _OptionalJSONField}

    def clean_at(self) -> Any:
        """Check a new time. That of a schedule that has run may have passed."""
        at = self.cleaned_data["at"]
        if at and "at" in self.changed_data and at < now() - PAST:
            raise forms.ValidationError(_("This time has passed."))
        return at

    def clean(self) -> dict[str, Any]:
        """Check the schedule that the fields make, with those of the code, and that its task can be called."""
        from redis_kit.queues.features.schedules import control
        from redis_kit.queues.tasks import discovery

        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        row = Schedule(**cleaned)
        try:
            discovery.discover()
            control.check(row)
        except InvalidSchedule as error:
            self._refuse(error.field, error)
        except tuple(FIELDS) as error:
            self._refuse(next(field for kind, field in FIELDS.items() if isinstance(error, kind)), error)
        return cleaned

    def _refuse(self, field: str, error: Exception) -> None:
        reason = REASONS.get(field, "%(error)s") % {"error": error}
        self.add_error(field if field in self.fields else None, reason)


class ScheduleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Schedules of the database, which may change those of the code."""

    form = ScheduleForm
    list_display = ("name", "task", "every", "cron", "at", "enabled", "changed")
    list_filter = ("enabled", "kind")
    list_per_page = 100
    search_fields = ("name", "task")
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("Task"), {"fields": ("kind", "task", "args", "kwargs", "queue")}),
        (_("Time"), {"fields": ("every", "cron", "timezone", "at", "start", "end", "jitter")}),
        (_("If it comes at a bad time"), {"fields": ("overlap", "catch_up")}),
    )
