"""A hold carries what its rental burns an hour, and the door has one more call."""

from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0004_tax")]
    operations = [
        migrations.AddField(
            model_name="hold",
            name="burn_micros_per_hour",
            field=models.BigIntegerField(
                db_default=0, default=0, help_text="Gross, what its rental costs an hour; 0 unless running"
            ),
        ),
        migrations.AddConstraint(
            model_name="hold",
            constraint=models.CheckConstraint(
                condition=models.Q(("burn_micros_per_hour__gte", 0)), name="burn_not_negative"
            ),
        ),
        *(
            migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop)
            for name in ("10_only_grows.sql", "40_door.sql")
        ),
    ]
