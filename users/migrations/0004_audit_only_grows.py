"""Installs what keeps the record of decisions from being changed, from `users/sql/`."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("users", "0003_organisations_and_keys")]
    operations = [
        migrations.RunSQL(path.read_text(), reverse_sql=migrations.RunSQL.noop) for path in sorted(SQL.glob("*.sql"))
    ]
