"""The dashboard's permissions. Its model has no table."""

from django.db import migrations, models


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
                    ("view_dashboard", "Can view the Redis dashboard"),
                    ("manage_queues", "Can manage queues and their jobs"),
                    ("release_locks", "Can release locks that others hold"),
                    ("reset_throttles", "Can reset and change throttles"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
