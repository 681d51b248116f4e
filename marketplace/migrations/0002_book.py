"""Installs the book's functions from `marketplace/sql/`."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"
NAMES = ("10_book.sql", "20_orders.sql", "30_rentals.sql")


class Migration(migrations.Migration):
    dependencies = [("marketplace", "0001_initial"), ("billing", "0003_topups")]
    operations = [
        migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop) for name in NAMES
    ]
