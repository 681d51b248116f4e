"""An offer in another currency keeps the day and the origin of the rates its USD price was made with."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0005_cloud_terms")]

    operations = [
        migrations.AddField(
            model_name="offer",
            name="rate_on",
            field=models.DateField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="offer",
            name="rate_origin",
            field=models.CharField(
                blank=True,
                choices=[("ecb", "ECB reference rate"), ("sample", "sample rate")],
                default="",
                max_length=6,
            ),
            preserve_default=False,
        ),
    ]
