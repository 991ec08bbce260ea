"""The table of the keys of once()."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("redis_kit", "0003_view_identities")]

    operations = [
        migrations.CreateModel(
            name="OnceKey",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=255)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires", models.DateTimeField(db_index=True, null=True)),
                ("result", models.TextField(default="")),
            ],
            options={
                "verbose_name": "key of once()",
                "verbose_name_plural": "keys of once()",
                "default_permissions": (),
            },
        ),
    ]
