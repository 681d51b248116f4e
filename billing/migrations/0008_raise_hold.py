"""Installs the door's function that raises a hold."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql" / "70_raise.sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0007_settle")]
    operations = [migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop)]
