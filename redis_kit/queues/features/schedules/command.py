"""``manage.py rk_schedule``: see, pause, resume, run and import schedules."""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import translation

from redis_kit.core import terminal
from redis_kit.core.errors import InvalidValue
from redis_kit.core.text import clean
from redis_kit.queues.errors import InvalidSchedule

NAMED = ("pause", "resume", "run")


class Command(terminal.KitCommand):
    """Show and control schedules."""

    help = "Show schedules and when they tick next; pause, resume or run one; import those of celery beat."
    exit_codes = (
        "Exit codes: 0 done, 1 no schedule of this name, nothing to do, or a schedule is overdue, 2 wrong arguments, "
        "69 Redis is unavailable."
    )
    actions = {
        "list": "show the schedules (default)",
        "pause": "turn the schedule NAME off",
        "resume": "turn it on again",
        "run": "add a job of it now",
        "import": "take over the schedules of django-celery-beat's tables",
    }

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        self.parser = parser
        about = "; ".join(f"{name}: {text}" for name, text in self.actions.items())
        parser.add_argument("action", nargs="?", default="list", choices=self.actions, metavar="ACTION", help=about)
        parser.add_argument("name", type=terminal.name, nargs="?", metavar="NAME", help="name of a schedule")
        parser.add_argument(
            "--next", type=terminal.whole(1, 1000), metavar="N", help="show the next N ticks within 24 hours, 1 to 1000"
        )
        parser.add_argument("--dry-run", action="store_true", help="with import: change nothing")
        parser.add_argument("--json", action="store_true", help="print JSON, with times in seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command. Exit code 1: no schedule of this name, or one is overdue; 69: Redis is unavailable."""
        action, name = options["action"], options["name"]
        if (name is not None) != (action in NAMED):
            self.parser.error(f"{action} needs the NAME of a schedule" if name is None else f"{action} takes no NAME")
        if options["next"] and action != "list":
            self.parser.error(f"--next belongs to list, not to {action}")
        if options["dry_run"] and action != "import":
            self.parser.error(f"--dry-run belongs to import, not to {action}")
        with terminal.failing(), translation.override(None):
            # Without a task framework this says what to install.
            from redis_kit.queues.features.schedules.actions import ACTIONS

            try:
                ACTIONS[action](self, options)
            except (InvalidValue, InvalidSchedule) as error:
                raise CommandError(clean(str(error))) from error
