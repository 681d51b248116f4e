-- Whoever inserts postings, one row or a hundred thousand: each entry balances, balances move, wallets stay covered.

ALTER TABLE billing_posting DROP CONSTRAINT IF EXISTS posting_account_in_its_currency;
ALTER TABLE billing_posting ADD CONSTRAINT posting_account_in_its_currency
    FOREIGN KEY (account_id, currency) REFERENCES billing_account (id, currency);

CREATE OR REPLACE FUNCTION billing_apply_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    uneven record;
BEGIN
    -- Stored balances are locked in one order everywhere, so that no two writers wait for each other; then moved.
    WITH moved AS (
        SELECT account_id, sum(amount_micros)::bigint AS amount_micros FROM fresh GROUP BY account_id
    ), locked AS MATERIALIZED (
        SELECT account.id FROM billing_account AS account
         WHERE account.id IN (SELECT account_id FROM moved) AND NOT account.entries_only
         ORDER BY account.id FOR NO KEY UPDATE
    ), updated AS (
        UPDATE billing_account AS account SET posted_micros = account.posted_micros + moved.amount_micros
          FROM locked JOIN moved ON moved.account_id = locked.id WHERE account.id = locked.id
    )
    SELECT entry_id, currency, sum(amount_micros) AS rest INTO uneven
      FROM fresh GROUP BY entry_id, currency HAVING sum(amount_micros) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'entry % does not balance in %: % micros are left over', uneven.entry_id, uneven.currency, uneven.rest
            USING ERRCODE = 'LB002';
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER postings_move_balances AFTER INSERT ON billing_posting
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION billing_apply_postings();
