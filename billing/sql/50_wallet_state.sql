-- What is read and locked by whoever is about to place a hold.

-- What an organisation may spend in a currency, and what stands in its way. Without a wallet `account_id` is null.
DROP FUNCTION IF EXISTS billing_wallet_state(bigint, text);
CREATE FUNCTION billing_wallet_state(
    p_organisation bigint, p_currency text,
    OUT account_id bigint, OUT available_micros bigint, OUT owes_anything boolean, OUT is_frozen boolean,
    OUT is_renter boolean, OUT are_books_stopped boolean
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT wallet.id, coalesce(wallet.posted_micros - wallet.held_micros, 0),
           EXISTS (SELECT FROM billing_account AS owed
                    WHERE owed.owner_id = organisation.id AND owed.kind = 'receivable' AND owed.posted_micros < 0),
           organisation.frozen_at IS NOT NULL, organisation.kind = 'renter',
           EXISTS (SELECT FROM billing_booksstop WHERE lifted_at IS NULL)
      INTO account_id, available_micros, owes_anything, is_frozen, is_renter, are_books_stopped
      FROM users_organisation AS organisation
      LEFT JOIN billing_account AS wallet
        ON wallet.owner_id = organisation.id AND wallet.kind = 'wallet' AND wallet.currency = p_currency
     WHERE organisation.id = p_organisation;
END $$;

-- How an organisation is taxed at an instant; a rate of null: nothing is sold to it.
CREATE OR REPLACE FUNCTION billing_tax_state(
    p_organisation bigint, p_at timestamptz, OUT is_decided boolean, OUT rate_percent numeric
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT decision.rate_percent INTO rate_percent FROM billing_taxdecision AS decision
     WHERE organisation_id = p_organisation AND valid_from <= p_at AND (valid_to IS NULL OR valid_to > p_at) LIMIT 1;
    is_decided := FOUND;
END $$;

-- Locks an organisation's wallet until the transaction ends: what is read of it after this stays true.
CREATE OR REPLACE FUNCTION billing_lock_wallet(p_organisation bigint, p_currency text)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM FROM billing_account
      WHERE owner_id = p_organisation AND kind = 'wallet' AND currency = p_currency FOR NO KEY UPDATE;
END $$;
