"""Installs the door for many hours at once."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql" / "60_settle.sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0006_lock_accounts")]
    operations = [migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop)]
