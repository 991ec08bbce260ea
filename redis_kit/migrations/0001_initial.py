"""The models of the kit."""

import django.utils.timezone
from django.db import migrations, models

import redis_kit.core.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Dashboard",
            fields=[
                ("slug", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=200)),
            ],
            options={
                "verbose_name": "dashboard",
                "verbose_name_plural": "Dashboard",
                "permissions": [
                    ("change_indexes", "Can clear and rebuild filters and indexes"),
                    ("change_limits", "Can change the limits of semaphores"),
                    ("manage_queues", "Can manage queues and their jobs"),
                    ("release_locks", "Can release locks that others hold"),
                    ("reset_throttles", "Can reset and change throttles"),
                    ("view_dashboard", "Can view the Redis dashboard"),
                    ("view_identities", "Can see identities unmasked"),
                    ("view_keys", "Can view the names of Redis keys"),
                    ("view_logs", "Can view log records"),
                    ("view_messages", "Can read messages of others, which is logged"),
                    ("view_server", "Can view the state of the Redis servers"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="OnceKey",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("key", redis_kit.core.fields.ExactCharField(max_length=255)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires", models.DateTimeField(db_index=True, null=True)),
                ("result", redis_kit.core.fields.ExactTextField(default="")),
            ],
            options={
                "verbose_name": "key of once()",
                "verbose_name_plural": "keys of once()",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("sent", models.DateTimeField(null=True)),
                ("queue", models.CharField(max_length=512)),
                ("job", models.CharField(max_length=2000)),
                ("body", redis_kit.core.fields.ExactTextField()),
                ("priority", models.SmallIntegerField(default=0)),
                ("due", models.BigIntegerField(default=0)),
                ("unique_key", models.CharField(max_length=64)),
                ("unique_until", models.CharField(max_length=20)),
                ("replace", models.BooleanField(default=False)),
                ("lane", redis_kit.core.fields.ExactTextField(default="")),
            ],
            options={
                "verbose_name": "message of the outbox",
                "verbose_name_plural": "messages of the outbox",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "name",
                    redis_kit.core.fields.ExactCharField(
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
        migrations.CreateModel(
            name="PageViewSnapshot",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "period",
                    models.CharField(
                        choices=[("day", "day"), ("week", "week"), ("month", "month")],
                        max_length=5,
                        verbose_name="period",
                    ),
                ),
                ("start", models.DateField(verbose_name="start")),
                ("digest", models.CharField(max_length=32)),
                ("page", redis_kit.core.fields.ExactTextField(verbose_name="page")),
                ("key", redis_kit.core.fields.ExactTextField(blank=True, verbose_name="key")),
                ("views", models.PositiveBigIntegerField(verbose_name="views")),
                ("visitors", models.PositiveBigIntegerField(verbose_name="visitors")),
                (
                    "distinct",
                    models.BooleanField(
                        default=False,
                        help_text="If not, a visitor may count more than once in the period.",
                        verbose_name="distinct visitors",
                    ),
                ),
                ("bots", models.PositiveBigIntegerField(verbose_name="requests of bots")),
            ],
            options={
                "verbose_name": "snapshot of page views",
                "verbose_name_plural": "snapshots of page views",
                "default_permissions": (),
                "indexes": [models.Index(fields=["period", "start"], name="redis_kit_snapshot_start")],
                "constraints": [
                    models.UniqueConstraint(fields=("digest", "period", "start"), name="redis_kit_snapshot_of_period")
                ],
            },
        ),
        migrations.CreateModel(
            name="SignInDay",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("label", models.CharField(max_length=200)),
                ("object_id", redis_kit.core.fields.ExactCharField(max_length=255)),
                ("day", models.DateField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("sign_in", "sign-in"), ("make_up", "made up"), ("freeze", "frozen")],
                        default="sign_in",
                        max_length=10,
                    ),
                ),
            ],
            options={
                "verbose_name": "day of a sign-in",
                "verbose_name_plural": "days of sign-ins",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("label", "object_id", "day"), name="redis_kit_signinday_unique")
                ],
            },
        ),
    ]
