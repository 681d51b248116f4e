-- Entries, postings and movements only grow. Holds and accounts change through the triggers of 20 and 30 alone.

CREATE OR REPLACE FUNCTION billing_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% only grows: no %', TG_TABLE_NAME, TG_OP USING ERRCODE = 'LB003';
END $$;

CREATE OR REPLACE TRIGGER entries_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_journalentry
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();
CREATE OR REPLACE TRIGGER postings_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_posting
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();
CREATE OR REPLACE TRIGGER movements_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_holdmovement
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();
CREATE OR REPLACE TRIGGER holds_stay BEFORE DELETE OR TRUNCATE ON billing_hold
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();
CREATE OR REPLACE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON billing_account
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();

-- A hold's money moves by movements alone. What its rental burns stands beside it: it changes by itself, and only
-- while `billing_set_burn` is at work.
CREATE OR REPLACE FUNCTION billing_check_burn() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept billing_hold := NEW;
BEGIN
    kept.burn_micros_per_hour := OLD.burn_micros_per_hour;
    IF kept IS DISTINCT FROM OLD OR current_setting('billing.door', true) IS DISTINCT FROM 'set_burn' THEN
        RAISE EXCEPTION '% only grows: no %', TG_TABLE_NAME, TG_OP USING ERRCODE = 'LB003';
    END IF;
    RETURN NEW;
END $$;
-- Depth 0 is a statement from outside; our triggers work at depth 1 and are not asked.
CREATE OR REPLACE TRIGGER holds_move_by_movements BEFORE UPDATE ON billing_hold
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION billing_check_burn();

-- An account's own terms never change; its balance only by rolling up what is already posted, which proves itself.
CREATE OR REPLACE FUNCTION billing_check_roll_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    posted_since bigint;
BEGIN
    IF (NEW.id, NEW.kind, NEW.currency, NEW.owner_id, NEW.held_micros, NEW.entries_only)
       IS DISTINCT FROM (OLD.id, OLD.kind, OLD.currency, OLD.owner_id, OLD.held_micros, OLD.entries_only)
       OR NOT OLD.entries_only OR NEW.rolled_up_to < OLD.rolled_up_to THEN
        RAISE EXCEPTION 'account % changes by postings and holds alone', OLD.id USING ERRCODE = 'LB003';
    END IF;
    SELECT coalesce(sum(amount_micros), 0) INTO posted_since FROM billing_posting
     WHERE account_id = OLD.id AND id > OLD.rolled_up_to AND id <= NEW.rolled_up_to;
    IF NEW.posted_micros <> OLD.posted_micros + posted_since THEN
        RAISE EXCEPTION 'account %: a roll-up must equal its postings', OLD.id USING ERRCODE = 'LB003';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER accounts_move_by_postings BEFORE UPDATE ON billing_account
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION billing_check_roll_up();

-- A new account starts at nothing, with terms that fit its kind; they never change (see above).
CREATE OR REPLACE FUNCTION billing_open_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.posted_micros, NEW.held_micros, NEW.rolled_up_to) <> (0, 0, 0) THEN
        RAISE EXCEPTION 'an account starts empty' USING ERRCODE = 'LB003';
    END IF;
    IF (NEW.kind IN ('wallet', 'receivable', 'payable')) <> (NEW.owner_id IS NOT NULL)
       OR (NEW.kind = 'wallet' AND NEW.entries_only) OR NEW.currency !~ '^[A-Z]{3}$' THEN
        RAISE EXCEPTION 'owner, currency and keeping of a % account do not fit', NEW.kind USING ERRCODE = 'LB003';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER accounts_open_empty BEFORE INSERT ON billing_account
    FOR EACH ROW EXECUTE FUNCTION billing_open_account();

-- A new hold starts at nothing too: what it holds comes by its first movement.
CREATE OR REPLACE FUNCTION billing_start_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.placed_micros, NEW.remaining_micros, NEW.captured_micros, NEW.released_micros) <> (0, 0, 0, 0) THEN
        RAISE EXCEPTION 'a hold starts empty' USING ERRCODE = 'LB003';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER holds_start_empty BEFORE INSERT ON billing_hold
    FOR EACH ROW EXECUTE FUNCTION billing_start_hold();
