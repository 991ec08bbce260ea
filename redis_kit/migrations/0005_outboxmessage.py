"""The table of the outbox."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("redis_kit", "0004_oncekey")]

    operations = [
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("queue", models.CharField(max_length=512)),
                ("job", models.CharField(max_length=2000)),
                ("body", models.TextField()),
                ("priority", models.SmallIntegerField(default=0)),
                ("due", models.BigIntegerField(default=0)),
                ("unique_key", models.CharField(max_length=64)),
                ("unique_until", models.CharField(max_length=20)),
                ("replace", models.BooleanField(default=False)),
            ],
            options={
                "verbose_name": "message of the outbox",
                "verbose_name_plural": "messages of the outbox",
                "default_permissions": (),
            },
        ),
    ]
