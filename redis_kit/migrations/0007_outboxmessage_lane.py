"""A column for the group of a call in the outbox."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("redis_kit", "0006_schedule")]

    operations = [migrations.AddField(model_name="outboxmessage", name="lane", field=models.TextField(default=""))]
