"""Installs the ledger's triggers and functions from `billing/sql/`, in the order of their names."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]
    operations = [
        migrations.RunSQL(path.read_text(), reverse_sql=migrations.RunSQL.noop) for path in sorted(SQL.glob("*.sql"))
    ]
