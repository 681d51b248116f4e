-- The one door: post, reverse, hold, capture, release, set_burn, roll_up. One statement each; the same key and content again is
-- the same answer, the same key with other content an error (LB001). Lock order: hold, then accounts by id.

CREATE OR REPLACE FUNCTION billing_post(
    p_key text, p_kind text, p_accounts bigint[], p_amounts bigint[],
    p_reference_type text, p_reference_id text, p_description text, p_effective_at timestamptz
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content bytea := sha256(convert_to(concat_ws('|', p_kind, p_accounts::text, p_amounts::text, p_reference_type,
                                                 p_reference_id, p_description), 'UTF8'));
    entry bigint;
BEGIN
    IF cardinality(p_accounts) = 0 THEN
        RAISE EXCEPTION 'an entry has at least one line' USING ERRCODE = 'LB004';
    END IF;
    -- Entry and lines in one statement. Each account's row is shared before its line takes its number: a roll-up waits
    -- for us, and we for it, while writers never wait for each other here. An account that does not exist has no
    -- currency, which the table refuses.
    WITH written AS (
        INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description,
                                          effective_at, created_at)
        VALUES (p_key, content, p_kind, p_reference_type, p_reference_id, p_description, p_effective_at,
                clock_timestamp())
        ON CONFLICT (key) DO NOTHING RETURNING id
    ), lines AS (
        INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)
        SELECT written.id, line.account_id, account.currency, line.amount_micros
          FROM written, unnest(p_accounts, p_amounts) AS line (account_id, amount_micros)
          LEFT JOIN (SELECT id, currency FROM billing_account WHERE id = ANY (p_accounts) FOR KEY SHARE) AS account
            ON account.id = line.account_id
    )
    SELECT id INTO entry FROM written;
    IF entry IS NULL THEN
        RETURN billing_same_entry(p_key, content);
    END IF;
    RETURN entry;
END $$;

CREATE OR REPLACE FUNCTION billing_same_entry(p_key text, p_content bytea)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    known record;
BEGIN
    SELECT id, content_sha256 INTO known FROM billing_journalentry WHERE key = p_key;
    IF known.content_sha256 IS DISTINCT FROM p_content THEN
        RAISE EXCEPTION 'key % was used with other content', p_key USING ERRCODE = 'LB001';
    END IF;
    RETURN known.id;
END $$;

CREATE OR REPLACE FUNCTION billing_write_postings(p_entry bigint, p_accounts bigint[], p_amounts bigint[])
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    written integer;
BEGIN
    -- Each account's row is shared before its posting takes its number: a roll-up waits for us, and we for it, while
    -- writers never wait for each other here. An account that does not exist has no currency, which the table refuses.
    INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)
    SELECT p_entry, line.account_id, account.currency, line.amount_micros
      FROM unnest(p_accounts, p_amounts) AS line (account_id, amount_micros)
      LEFT JOIN (SELECT id, currency FROM billing_account WHERE id = ANY (p_accounts) FOR KEY SHARE) AS account
        ON account.id = line.account_id;
    GET DIAGNOSTICS written = ROW_COUNT;
    IF written = 0 THEN
        RAISE EXCEPTION 'an entry has at least one line' USING ERRCODE = 'LB004';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION billing_reverse(
    p_key text, p_entry bigint, p_description text, p_effective_at timestamptz
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content bytea := sha256(convert_to(concat_ws('|', 'reverse', p_entry, p_description), 'UTF8'));
    original billing_journalentry;
    accounts bigint[];
    amounts bigint[];
    entry bigint;
BEGIN
    SELECT * INTO original FROM billing_journalentry WHERE id = p_entry;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'entry % does not exist', p_entry USING ERRCODE = 'LB004';
    END IF;
    INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description,
                                      effective_at, created_at, reverses_id)
    VALUES (p_key, content, original.kind || ':reversal', original.reference_type, original.reference_id, p_description,
            p_effective_at, clock_timestamp(), p_entry)
    ON CONFLICT (key) DO NOTHING RETURNING id INTO entry;
    IF entry IS NULL THEN
        RETURN billing_same_entry(p_key, content);
    END IF;
    SELECT array_agg(account_id ORDER BY id), array_agg(-amount_micros ORDER BY id) INTO accounts, amounts
      FROM billing_posting WHERE entry_id = p_entry;
    PERFORM billing_write_postings(entry, accounts, amounts);
    RETURN entry;
END $$;

CREATE OR REPLACE FUNCTION billing_place_hold(
    p_key text, p_account bigint, p_amount bigint, p_reference_type text, p_reference_id text, p_expires_at timestamptz
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content bytea := sha256(convert_to(concat_ws('|', 'hold', p_account, p_amount, p_reference_type, p_reference_id,
                                                 extract(epoch FROM p_expires_at)), 'UTF8'));
    held bigint;
    known record;
BEGIN
    INSERT INTO billing_hold (account_id, currency, key, content_sha256, reference_type, reference_id,
                              placed_micros, remaining_micros, captured_micros, released_micros, expires_at, created_at)
    SELECT id, currency, p_key, content, p_reference_type, p_reference_id, 0, 0, 0, 0, p_expires_at, clock_timestamp()
      FROM billing_account WHERE id = p_account AND kind = 'wallet'
    ON CONFLICT (key) DO NOTHING RETURNING id INTO held;
    IF held IS NULL THEN
        SELECT id, content_sha256 INTO known FROM billing_hold WHERE key = p_key;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'account % is not a wallet', p_account USING ERRCODE = 'LB004';
        ELSIF known.content_sha256 IS DISTINCT FROM content THEN
            RAISE EXCEPTION 'key % was used with other content', p_key USING ERRCODE = 'LB001';
        END IF;
        RETURN known.id;
    END IF;
    INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, created_at)
    VALUES (held, 'placed:' || held, content, 'placed', p_amount, clock_timestamp());
    RETURN held;
END $$;

CREATE OR REPLACE FUNCTION billing_capture(
    p_hold bigint, p_key text, p_kind text, p_amount bigint, p_accounts bigint[], p_amounts bigint[],
    p_reference_type text, p_reference_id text, p_description text, p_effective_at timestamptz
) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content bytea := sha256(convert_to(concat_ws('|', 'capture', p_hold, p_kind, p_amount, p_accounts::text,
                                                 p_amounts::text, p_reference_type, p_reference_id, p_description), 'UTF8'));
    hold billing_hold;
    entry bigint;
BEGIN
    SELECT * INTO hold FROM billing_hold WHERE id = p_hold FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'hold % does not exist', p_hold USING ERRCODE = 'LB004';
    END IF;
    INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description,
                                      effective_at, created_at)
    VALUES (p_key, content, p_kind, p_reference_type, p_reference_id, p_description, p_effective_at, clock_timestamp())
    ON CONFLICT (key) DO NOTHING RETURNING id INTO entry;
    IF entry IS NULL THEN
        RETURN billing_same_entry(p_key, content);
    END IF;
    PERFORM FROM billing_account WHERE id = ANY (hold.account_id || p_accounts) AND NOT entries_only
      ORDER BY id FOR NO KEY UPDATE;
    -- The hold first: the wallet is covered after each of the two steps.
    INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, entry_id, created_at)
    VALUES (p_hold, p_key, content, 'captured', p_amount, entry, clock_timestamp());
    PERFORM billing_write_postings(entry, hold.account_id || p_accounts, -p_amount || p_amounts);
    RETURN entry;
END $$;

-- Releases `p_amount`, or with null all that is left (then possibly nothing); returns the micros released.
CREATE OR REPLACE FUNCTION billing_release(p_hold bigint, p_key text, p_amount bigint)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content bytea := sha256(convert_to(concat_ws('|', 'release', p_hold, coalesce(p_amount::text, 'rest')), 'UTF8'));
    hold billing_hold;
    known record;
    amount bigint;
BEGIN
    SELECT * INTO hold FROM billing_hold WHERE id = p_hold FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'hold % does not exist', p_hold USING ERRCODE = 'LB004';
    END IF;
    SELECT content_sha256, amount_micros INTO known FROM billing_holdmovement WHERE key = p_key;
    IF FOUND THEN
        IF known.content_sha256 IS DISTINCT FROM content THEN
            RAISE EXCEPTION 'key % was used with other content', p_key USING ERRCODE = 'LB001';
        END IF;
        RETURN known.amount_micros;
    END IF;
    amount := coalesce(p_amount, hold.remaining_micros);
    IF p_amount IS NULL AND amount = 0 THEN
        RETURN 0;
    END IF;
    INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, created_at)
    VALUES (p_hold, p_key, content, 'released', amount, clock_timestamp());
    RETURN amount;
END $$;

-- Says what the hold's rental takes from the wallet an hour (gross); returns what it took before. Setting it again
-- changes nothing. No money moves: the setting below lets this statement, and no other, past the guard of the holds.
CREATE OR REPLACE FUNCTION billing_set_burn(p_hold bigint, p_micros_per_hour bigint)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET billing.door = 'set_burn' AS $$
DECLARE
    before bigint;
BEGIN
    SELECT burn_micros_per_hour INTO before FROM billing_hold WHERE id = p_hold FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'hold % does not exist', p_hold USING ERRCODE = 'LB004';
    END IF;
    IF before IS DISTINCT FROM p_micros_per_hour THEN
        UPDATE billing_hold SET burn_micros_per_hour = p_micros_per_hour WHERE id = p_hold;
    END IF;
    RETURN before;
END $$;

-- Folds the tail of an entries-only account into its stored balance; returns how many postings were folded.
CREATE OR REPLACE FUNCTION billing_roll_up(p_account bigint)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    account billing_account;
    tail record;
BEGIN
    SELECT * INTO account FROM billing_account WHERE id = p_account AND entries_only FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT count(*) AS lines, coalesce(sum(amount_micros), 0)::bigint AS amount_micros, max(id) AS last INTO tail
      FROM billing_posting WHERE account_id = p_account AND id > account.rolled_up_to;
    IF tail.lines > 0 THEN
        UPDATE billing_account SET posted_micros = posted_micros + tail.amount_micros, rolled_up_to = tail.last
         WHERE id = p_account;
    END IF;
    RETURN tail.lines;
END $$;

-- The balance of any account: stored, plus the tail of an entries-only one.
CREATE OR REPLACE FUNCTION billing_balance(p_account bigint)
RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT account.posted_micros + CASE WHEN account.entries_only THEN coalesce((
               SELECT sum(amount_micros) FROM billing_posting
                WHERE account_id = account.id AND id > account.rolled_up_to), 0) ELSE 0 END::bigint
      FROM billing_account AS account WHERE account.id = p_account
$$;
