"""Installs the function that locks accounts, where the door was installed before it had one."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql" / "50_lock.sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0005_burn")]
    operations = [migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop)]
