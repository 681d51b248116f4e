-- A hold takes in more money of its wallet: a running rental's next hour. The same key and content again changes
-- nothing and is the same answer, other content an error (LB001). Returns what was added. Lock order: hold, account.

CREATE OR REPLACE FUNCTION billing_raise_hold(p_hold bigint, p_key text, p_amount bigint)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    content bytea := sha256(convert_to(concat_ws('|', 'raise', p_hold, p_amount), 'UTF8'));
    known bytea;
BEGIN
    PERFORM FROM billing_hold WHERE id = p_hold FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'hold % does not exist', p_hold USING ERRCODE = 'LB004';
    END IF;
    SELECT content_sha256 INTO known FROM billing_holdmovement WHERE key = p_key;
    IF FOUND THEN
        IF known IS DISTINCT FROM content THEN
            RAISE EXCEPTION 'key % was used with other content', p_key USING ERRCODE = 'LB001';
        END IF;
        RETURN p_amount;
    END IF;
    INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, created_at)
    VALUES (p_hold, p_key, content, 'placed', p_amount, clock_timestamp());
    RETURN p_amount;
END $$;
