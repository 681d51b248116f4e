"""When an operator said where the money of a top-up that is held for review went."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("billing", "0009_wallet_state")]
    operations = [
        migrations.AddField(
            model_name="topup",
            name="settled_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When an operator said where the money of one held for review went",
                null=True,
            ),
        ),
    ]
