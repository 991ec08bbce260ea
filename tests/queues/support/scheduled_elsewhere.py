"""A task of django.tasks that another backend than the kit's runs; imported when the setting TASKS has that."""

from redis_kit.queues import framework

noted: list[str] = []


def note(text: str) -> None:
    """Remember a text."""
    noted.append(text)


note = framework.Task(  # type: ignore[assignment]
    func=note, priority=0, queue_name="default", backend="now", run_after=None, takes_context=False
)
