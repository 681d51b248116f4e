-- Whoever inserts movements: the hold's figures and the wallet's held amount follow, and stay covered.

ALTER TABLE billing_hold DROP CONSTRAINT IF EXISTS hold_account_in_its_currency;
ALTER TABLE billing_hold ADD CONSTRAINT hold_account_in_its_currency
    FOREIGN KEY (account_id, currency) REFERENCES billing_account (id, currency);

CREATE OR REPLACE FUNCTION billing_apply_movements() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    movement billing_holdmovement;
    movements bigint;
    wallet bigint;
BEGIN
    -- The everyday case, one movement, moves its hold and then its wallet without joins.
    SELECT count(*) INTO movements FROM fresh;
    IF movements = 1 THEN
        SELECT * INTO movement FROM fresh;
        UPDATE billing_hold
           SET placed_micros = placed_micros + CASE WHEN movement.kind = 'placed' THEN movement.amount_micros ELSE 0 END,
               captured_micros = captured_micros + CASE WHEN movement.kind = 'captured' THEN movement.amount_micros ELSE 0 END,
               released_micros = released_micros + CASE WHEN movement.kind = 'released' THEN movement.amount_micros ELSE 0 END,
               remaining_micros = remaining_micros + CASE WHEN movement.kind = 'placed' THEN movement.amount_micros ELSE -movement.amount_micros END
         WHERE id = movement.hold_id RETURNING account_id INTO wallet;
        UPDATE billing_account
           SET held_micros = held_micros + CASE WHEN movement.kind = 'placed' THEN movement.amount_micros ELSE -movement.amount_micros END
         WHERE id = wallet;
        RETURN NULL;
    END IF;
    PERFORM FROM billing_hold WHERE id IN (SELECT hold_id FROM fresh) ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM billing_account
      WHERE id IN (SELECT account_id FROM billing_hold WHERE id IN (SELECT hold_id FROM fresh))
      ORDER BY id FOR NO KEY UPDATE;
    UPDATE billing_hold AS hold
       SET placed_micros = hold.placed_micros + moved.placed,
           captured_micros = hold.captured_micros + moved.captured,
           released_micros = hold.released_micros + moved.released,
           remaining_micros = hold.remaining_micros + moved.placed - moved.captured - moved.released
      FROM (SELECT hold_id,
                   coalesce(sum(amount_micros) FILTER (WHERE kind = 'placed'), 0)::bigint AS placed,
                   coalesce(sum(amount_micros) FILTER (WHERE kind = 'captured'), 0)::bigint AS captured,
                   coalesce(sum(amount_micros) FILTER (WHERE kind = 'released'), 0)::bigint AS released
              FROM fresh GROUP BY hold_id) AS moved
     WHERE hold.id = moved.hold_id;
    UPDATE billing_account AS account
       SET held_micros = account.held_micros + moved.held
      FROM (SELECT hold.account_id,
                   sum(CASE WHEN fresh.kind = 'placed' THEN amount_micros ELSE -amount_micros END)::bigint AS held
              FROM fresh JOIN billing_hold AS hold ON hold.id = fresh.hold_id GROUP BY hold.account_id) AS moved
     WHERE account.id = moved.account_id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER movements_move_holds AFTER INSERT ON billing_holdmovement
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION billing_apply_movements();

-- A capture takes from the wallet exactly what it takes from the hold; looked at when the transaction commits, one by
-- one. `billing_settle` (60_settle.sql) makes many and asks the same of all of them at once, before it returns.
CREATE OR REPLACE FUNCTION billing_refuse_capture(capture bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'capture % does not match its entry', capture USING ERRCODE = 'LB002';
END $$;

CREATE OR REPLACE FUNCTION billing_capture_matches_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM billing_posting AS posting JOIN billing_hold AS hold ON hold.account_id = posting.account_id
         WHERE hold.id = NEW.hold_id AND posting.entry_id = NEW.entry_id
        HAVING sum(posting.amount_micros) = -NEW.amount_micros
    ) THEN
        PERFORM billing_refuse_capture(NEW.id);
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS captures_match_entries ON billing_holdmovement;
CREATE CONSTRAINT TRIGGER captures_match_entries AFTER INSERT ON billing_holdmovement
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.kind = 'captured' AND current_setting('billing.door', true) IS DISTINCT FROM 'settle')
    EXECUTE FUNCTION billing_capture_matches_entry();
