"""The permission to read messages of mailboxes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("redis_kit", "0013_indexes_and_logs")]

    operations = [
        migrations.AlterModelOptions(
            name="dashboard",
            options={
                "verbose_name": "dashboard",
                "verbose_name_plural": "Dashboard",
                # By codename, as the model has them.
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
    ]
