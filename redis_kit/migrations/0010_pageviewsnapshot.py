"""The table of page views in closed periods."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("redis_kit", "0009_view_server_and_keys"),
    ]

    operations = [
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
                ("page", models.TextField(verbose_name="page")),
                ("key", models.TextField(blank=True, verbose_name="key")),
                ("views", models.PositiveBigIntegerField(verbose_name="views")),
                ("visitors", models.PositiveBigIntegerField(verbose_name="visitors")),
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
    ]
