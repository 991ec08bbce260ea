"""The task of these peers."""

from typing import Any

from django.tasks import task

from benchmarks.support.job_log import note


@task
def nothing(about: dict[str, Any]) -> None:
    """Do nothing."""
    note(about["number"])
