-- What an organisation may spend in a currency, and what stands in its way: read by whoever is about to place a hold.

CREATE OR REPLACE FUNCTION billing_wallet_state(p_organisation bigint, p_currency text)
RETURNS TABLE (account_id bigint, available_micros bigint, owes_anything boolean, is_frozen boolean, are_books_stopped boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT wallet.id, coalesce(wallet.posted_micros - wallet.held_micros, 0),
           EXISTS (SELECT FROM billing_account AS owed
                    WHERE owed.owner_id = organisation.id AND owed.kind = 'receivable' AND owed.posted_micros < 0),
           organisation.frozen_at IS NOT NULL,
           EXISTS (SELECT FROM billing_booksstop WHERE lifted_at IS NULL)
      FROM users_organisation AS organisation
      LEFT JOIN billing_account AS wallet
        ON wallet.owner_id = organisation.id AND wallet.kind = 'wallet' AND wallet.currency = p_currency
     WHERE organisation.id = p_organisation;
END $$;
