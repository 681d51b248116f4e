"""Installs what is read and locked before a hold is placed, and the short way of a single movement."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0008_raise_hold")]
    operations = [
        migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop)
        for name in ("30_holds.sql", "50_wallet_state.sql")
    ]
