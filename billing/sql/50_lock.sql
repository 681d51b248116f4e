-- Locks wallets in the order of their ids until the transaction ends, for whoever reads a balance and then decides:
-- the application's role may read accounts, and a reader who may not write cannot lock. Returns how many were found.
CREATE OR REPLACE FUNCTION billing_lock_accounts(p_accounts bigint[])
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    found bigint;
BEGIN
    PERFORM FROM billing_account WHERE id = ANY (p_accounts) ORDER BY id FOR NO KEY UPDATE;
    GET DIAGNOSTICS found = ROW_COUNT;
    RETURN found;
END $$;
