"""The tasks of two releases of one project; the variable ``RELEASE`` says which one this process runs."""

import os

from redis_kit.queues import task
from tests.chaos.queues.support.history import note

NEW = os.environ.get("RELEASE", "old") == "new"


def done(number: int) -> None:
    """Write down that a job ran."""
    note(number, "begin", 0)
    note(number, "end", 0)


@task
def kept(number: int) -> None:
    """One that both releases have."""
    done(number)


if NEW:

    @task
    def added(number: int) -> None:
        """One that only the new release has."""
        done(number)

    @task(store_result=False)
    def renamed(number: int) -> None:
        """One that had another name."""
        done(number)

    @task
    def changed(number: int, *, colour: str, size: int = 1) -> None:
        """One with an argument more, which must be given."""
        done(number)

else:

    @task(store_result=False)
    def before(number: int) -> None:
        """The same under its old name."""
        done(number)

    @task
    def changed(number: int) -> None:
        """The same without that argument."""
        done(number)
