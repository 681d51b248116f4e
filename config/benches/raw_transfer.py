"""The least that a transfer must do, as one prepared statement: lock two rows in order, check, write, commit."""

import itertools

from django.db import connection

_TABLES = """
    CREATE TABLE raw_account (id bigint PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0));
    CREATE TABLE raw_journal (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
                              kind text NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
    CREATE TABLE raw_entry (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                            journal bigint NOT NULL REFERENCES raw_journal,
                            account bigint NOT NULL REFERENCES raw_account, amount bigint NOT NULL);
    CREATE INDEX raw_entry_by_account ON raw_entry (account, id);
    CREATE INDEX raw_entry_by_journal ON raw_entry (journal);
    INSERT INTO raw_account SELECT n, 1000000000000 FROM generate_series(1, 64) AS n;
"""
_TRANSFER = """
    WITH locked AS MATERIALIZED (
        SELECT id FROM raw_account WHERE id IN (%s::bigint, %s::bigint) ORDER BY id FOR NO KEY UPDATE
    ), journal AS (
        INSERT INTO raw_journal (key, kind) VALUES (%s::text, 'transfer') RETURNING id
    ), line (account, amount) AS (
        VALUES (%s::bigint, %s::bigint), (%s::bigint, %s::bigint)
    ), moved AS (
        UPDATE raw_account SET balance = balance + line.amount FROM locked JOIN line ON line.account = locked.id
         WHERE raw_account.id = locked.id
    )
    INSERT INTO raw_entry (journal, account, amount) SELECT journal.id, line.account, line.amount FROM journal, line
"""


class RawTransfers:
    """Tables of their own, and a call that moves one unit between the two accounts of a client."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_TABLES)
        self._numbers = itertools.count()

    def __call__(self, client: int = 0) -> None:
        """Move one unit."""
        debit, credit = 1 + 2 * client, 2 + 2 * client
        with connection.cursor() as cursor:
            cursor.execute(_TRANSFER, [debit, credit, f"r{next(self._numbers)}", debit, -1, credit, 1])
