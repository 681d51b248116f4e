"""Installs the door for many hours at once, and lets it judge its captures together."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0006_lock_accounts")]
    operations = [
        # Balances change all the time: with room in its page a new version needs no new place in the indexes.
        migrations.RunSQL(
            "ALTER TABLE billing_account SET (fillfactor = 50)", reverse_sql=migrations.RunSQL.noop
        ),
        *(
            migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop)
            for name in ("30_holds.sql", "60_settle.sql")
        ),
    ]
