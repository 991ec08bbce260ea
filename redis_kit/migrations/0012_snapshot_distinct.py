"""Whether the visitors of a stored period are distinct. The next snapshot corrects the rows that Redis still has."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("redis_kit", "0011_signinday"),
    ]

    operations = [
        migrations.AddField(
            model_name="pageviewsnapshot",
            name="distinct",
            field=models.BooleanField(
                default=False,
                help_text="If not, a visitor may count more than once in the period.",
                verbose_name="distinct visitors",
            ),
        ),
    ]
