"""A column that says when Redis got a call of the outbox."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("redis_kit", "0007_outboxmessage_lane")]

    operations = [migrations.AddField(model_name="outboxmessage", name="sent", field=models.DateTimeField(null=True))]
