"""The permission to see the identities of throttles unmasked."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("redis_kit", "0002_change_limits")]

    operations = [
        migrations.AlterModelOptions(
            name="dashboard",
            options={
                "verbose_name": "dashboard",
                "verbose_name_plural": "Dashboard",
                # By codename, as the model has them.
                "permissions": [
                    ("change_limits", "Can change the limits of semaphores"),
                    ("manage_queues", "Can manage queues and their jobs"),
                    ("release_locks", "Can release locks that others hold"),
                    ("reset_throttles", "Can reset and change throttles"),
                    ("view_dashboard", "Can view the Redis dashboard"),
                    ("view_identities", "Can see identities unmasked"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
