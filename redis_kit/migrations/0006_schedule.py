"""The schedules that are edited in the admin."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("redis_kit", "0005_outboxmessage"),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        help_text="The name of a schedule in the code changes that one. Empty fields: as in the code.",
                        max_length=200,
                        unique=True,
                        verbose_name="name",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("task", "task of this project"), ("celery", "task of Celery")],
                        default="task",
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                (
                    "task",
                    models.CharField(
                        blank=True,
                        help_text="Its dotted path, such as shop.tasks.report.",
                        max_length=300,
                        verbose_name="task",
                    ),
                ),
                (
                    "args",
                    models.JSONField(
                        blank=True, help_text="A list, such as [1, 2].", null=True, verbose_name="positional arguments"
                    ),
                ),
                (
                    "kwargs",
                    models.JSONField(
                        blank=True,
                        help_text='An object, such as {"n": 1}.',
                        null=True,
                        verbose_name="keyword arguments",
                    ),
                ),
                (
                    "queue",
                    models.CharField(
                        blank=True, help_text="Empty: that of the task.", max_length=200, verbose_name="queue"
                    ),
                ),
                ("every", models.FloatField(blank=True, null=True, verbose_name="every (seconds)")),
                (
                    "cron",
                    models.CharField(
                        blank=True,
                        help_text="Minute, hour, day, month, weekday: 0 4 * * * is 04:00.",
                        max_length=200,
                        verbose_name="cron",
                    ),
                ),
                (
                    "timezone",
                    models.CharField(
                        blank=True,
                        help_text="Of cron, such as Europe/Berlin. Empty: TIME_ZONE.",
                        max_length=100,
                        verbose_name="time zone",
                    ),
                ),
                ("at", models.DateTimeField(blank=True, null=True, verbose_name="once at")),
                (
                    "overlap",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("skip", "skip the tick"),
                            ("queue_one", "run it after the running job"),
                            ("allow", "run it beside the running job"),
                        ],
                        max_length=10,
                        verbose_name="overlap",
                    ),
                ),
                (
                    "catch_up",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="0 for none, 1 for the last one. Empty: 1.",
                        null=True,
                        verbose_name="missed ticks to run",
                    ),
                ),
                ("jitter", models.FloatField(blank=True, null=True, verbose_name="jitter (seconds)")),
                ("start", models.DateTimeField(blank=True, null=True, verbose_name="start")),
                ("end", models.DateTimeField(blank=True, null=True, verbose_name="end")),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("changed", models.DateTimeField(auto_now=True, verbose_name="changed")),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "Schedules",
                "ordering": ("name",),
            },
        ),
    ]
