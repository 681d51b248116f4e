-- Whoever inserts postings, one row or a hundred thousand: each entry balances, balances move, wallets stay covered.

ALTER TABLE billing_posting DROP CONSTRAINT IF EXISTS posting_account_in_its_currency;
ALTER TABLE billing_posting ADD CONSTRAINT posting_account_in_its_currency
    FOREIGN KEY (account_id, currency) REFERENCES billing_account (id, currency);

CREATE OR REPLACE FUNCTION billing_refuse_uneven(entry bigint, currency text, rest numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entry % does not balance in %: % micros are left over, or a line of it is zero', entry, currency, rest
        USING ERRCODE = 'LB002';
END $$;

CREATE OR REPLACE FUNCTION billing_apply_postings() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    accounts bigint[];
    amounts bigint[];
    is_one_entry boolean;
    is_even boolean;
BEGIN
    -- The everyday case, one entry of few lines in one currency, is weighed and moved without joins.
    SELECT array_agg(account_id ORDER BY account_id), array_agg(amount_micros ORDER BY account_id),
           min(entry_id) = max(entry_id) AND min(currency) = max(currency) AND count(*) <= 8,
           sum(amount_micros) = 0 AND NOT bool_or(amount_micros = 0)
      INTO accounts, amounts, is_one_entry, is_even FROM fresh;
    IF is_one_entry AND is_even THEN
        FOR i IN 1 .. cardinality(accounts) LOOP  -- by id, as everywhere, so that no two writers wait for each other
            UPDATE billing_account SET posted_micros = posted_micros + amounts[i]
             WHERE id = accounts[i] AND NOT entries_only;
        END LOOP;
    ELSIF accounts IS NOT NULL THEN
        PERFORM billing_refuse_uneven(entry_id, currency, sum(amount_micros)) FROM fresh GROUP BY entry_id, currency
         HAVING sum(amount_micros) <> 0 OR bool_or(amount_micros = 0);
        WITH moved AS (
            SELECT account_id, sum(amount_micros)::bigint AS amount_micros FROM fresh GROUP BY account_id
        ), locked AS MATERIALIZED (
            SELECT account.id FROM billing_account AS account
             WHERE account.id IN (SELECT account_id FROM moved) AND NOT account.entries_only
             ORDER BY account.id FOR NO KEY UPDATE
        )
        UPDATE billing_account AS account SET posted_micros = account.posted_micros + moved.amount_micros
          FROM locked JOIN moved ON moved.account_id = locked.id WHERE account.id = locked.id;
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER postings_move_balances AFTER INSERT ON billing_posting
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION billing_apply_postings();
