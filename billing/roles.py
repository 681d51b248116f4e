"""Two database roles: the owner migrates; the application may read the ledger and call its door, and nothing else there.

The application's role gets ordinary rights on every other table. Granting again changes nothing; run it after each
migration. With one role only, triggers and constraints still hold and `/readyz` says so.
"""

import re

from django.apps import apps
from django.db import connection, transaction

LEDGER_TABLES = ("billing_account", "billing_journalentry", "billing_posting", "billing_hold", "billing_holdmovement")
DOOR = (
    "billing_post(text, text, bigint[], bigint[], text, text, text, timestamptz)",
    "billing_reverse(text, bigint, text, timestamptz)",
    "billing_place_hold(text, bigint, bigint, text, text, timestamptz)",
    "billing_capture(bigint, text, text, bigint, bigint[], bigint[], text, text, text, timestamptz)",
    "billing_release(bigint, text, bigint)",
    "billing_settle(bigint[], text[], timestamptz[], text[], bigint[], bigint[], bigint[], text[], bigint[], text[], bigint[])",
    "billing_raise_hold(bigint, text, bigint)",
    "billing_set_burn(bigint, bigint)",
    "billing_roll_up(bigint)",
    "billing_balance(bigint)",
    "billing_lock_accounts(bigint[])",
    "billing_lock_wallet(bigint, text)",
    "billing_wallet_state(bigint, text)",
    "billing_tax_state(bigint, timestamptz)",
)
_OPENING = "kind, currency, owner_id, posted_micros, held_micros, entries_only, rolled_up_to, opened_at"
_INNER = (
    "billing_write_postings(bigint, bigint[], bigint[])",
    "billing_same_entry(text, bytea)",
    "billing_known_entries(bigint[], text[], bytea[])",
)
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)


def grant_to_application(role: str) -> None:
    """Give the role exactly what the application needs. Raises ValueError for a name that is not a plain identifier."""
    if not _NAME.fullmatch(role):
        raise ValueError(f"{role!r} is not a plain role name.")
    tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    others = ", ".join(sorted(tables - set(LEDGER_TABLES)))
    ledger = ", ".join(LEDGER_TABLES)
    with transaction.atomic(), connection.cursor() as cursor:
        for function in (*DOOR, *_INNER):
            cursor.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
        for statement in (
            f"GRANT USAGE ON SCHEMA public TO {role}",
            f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {others} TO {role}",
            f"REVOKE ALL ON {ledger} FROM {role}",
            f"GRANT SELECT ON {ledger} TO {role}",
            f"GRANT INSERT ({_OPENING}) ON billing_account TO {role}",
            *(f"GRANT EXECUTE ON FUNCTION {function} TO {role}" for function in DOOR),
        ):
            cursor.execute(statement)


def has_two_roles() -> bool:
    """Whether we are connected as a role that cannot write postings itself."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege('billing_posting', 'INSERT')")
        return not cursor.fetchone()[0]
