-- The door for many hours at once: captures of renters' holds, what providers earned by them, and what the holds give
-- back, in one call. Each line of the arrays is one hour; a blank provider key, an amount of 0, is left out.
--   p_holds            whose money; the line is captured from this hold: wallet -(net + tax), revenue net, tax tax
--   p_keys             of the renter's entry (and of the capture)
--   p_owners           of the payable account in USD; p_provider_keys: of the provider's entry: cost, payable
--   p_releases         what the hold gives back besides, under p_release_keys
-- Returns the entries of each line, null where there is none. The same keys with the same content again are the same
-- entries, with other content an error (LB001). Lock order: holds by id, accounts by id. The accounts exist before.

CREATE OR REPLACE FUNCTION billing_settle(
    p_holds bigint[], p_references text[], p_effective_at timestamptz[],
    p_keys text[], p_nets bigint[], p_taxes bigint[],
    p_owners bigint[], p_provider_keys text[], p_payables bigint[],
    p_release_keys text[], p_releases bigint[]
) RETURNS TABLE (line bigint, entry_id bigint, provider_entry_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET work_mem = '64MB'
SET plan_cache_mode = auto SET billing.door = 'settle' AS $$
#variable_conflict use_column
DECLARE
    wallets bigint[];
    currencies text[];
    revenues bigint[];
    taxes bigint[];
    payables bigint[];
    cost bigint;
    entries bigint[];
    provider_entries bigint[];
    contents bytea[];
    provider_contents bytea[];
    fresh boolean[];
    provider_fresh boolean[];
    wanted bigint;
    written bigint;
BEGIN
    IF cardinality(p_holds) IS NULL OR cardinality(p_holds) = 0 THEN
        RETURN;
    END IF;
    IF 0 > ANY (p_nets || p_taxes || p_payables || p_releases) THEN
        RAISE EXCEPTION 'the amounts of an hour are not below zero' USING ERRCODE = 'LB002';
    END IF;
    PERFORM FROM billing_hold WHERE id = ANY (p_holds) ORDER BY id FOR NO KEY UPDATE;
    SELECT id INTO cost FROM billing_account WHERE kind = 'cost' AND currency = 'USD' AND owner_id IS NULL;

    SELECT array_agg(hold.account_id ORDER BY hour.line), array_agg(hold.currency ORDER BY hour.line),
           array_agg(revenue.id ORDER BY hour.line),
           array_agg(tax.id ORDER BY hour.line), array_agg(payable.id ORDER BY hour.line),
           array_agg(CASE WHEN hour.net + hour.tax > 0 THEN nextval('billing_journalentry_id_seq') END ORDER BY hour.line),
           array_agg(CASE WHEN hour.payable > 0 THEN nextval('billing_journalentry_id_seq') END ORDER BY hour.line),
           array_agg(sha256(convert_to(concat_ws('|', 'rental_hour', hour.hold, hour.net, hour.tax, hour.reference), 'UTF8')) ORDER BY hour.line),
           array_agg(sha256(convert_to(concat_ws('|', 'provider_hour', payable.id, hour.payable, hour.reference), 'UTF8')) ORDER BY hour.line)
      INTO wallets, currencies, revenues, taxes, payables, entries, provider_entries, contents, provider_contents
      FROM unnest(p_holds, p_nets, p_taxes, p_owners, p_payables, p_references)
           WITH ORDINALITY AS hour (hold, net, tax, owner, payable, reference, line)
      LEFT JOIN billing_hold AS hold ON hold.id = hour.hold
      LEFT JOIN billing_account AS revenue ON revenue.kind = 'revenue' AND revenue.currency = hold.currency AND revenue.owner_id IS NULL
      LEFT JOIN billing_account AS tax ON tax.kind = 'tax' AND tax.currency = hold.currency AND tax.owner_id IS NULL
      LEFT JOIN billing_account AS payable ON payable.kind = 'payable' AND payable.currency = 'USD' AND payable.owner_id = hour.owner;

    -- Stored balances are locked; of the house's accounts the row is shared, so that a roll-up waits for our lines.
    PERFORM FROM billing_account WHERE id = ANY (wallets || payables) ORDER BY id FOR NO KEY UPDATE;
    PERFORM FROM billing_account WHERE id = ANY (cost || revenues || taxes) ORDER BY id FOR KEY SHARE;

    INSERT INTO billing_journalentry (id, key, content_sha256, kind, reference_type, reference_id, description,
                                      effective_at, created_at)
    SELECT entry.id, entry.key, entry.content, entry.kind, 'rental', entry.reference, '', entry.effective_at, clock_timestamp()
      FROM (SELECT id, key, content, 'rental_hour' AS kind, reference, effective_at
              FROM unnest(entries, p_keys, contents, p_references, p_effective_at)
                   AS hour (id, key, content, reference, effective_at) WHERE id IS NOT NULL
            UNION ALL
            SELECT id, key, content, 'provider_hour', reference, effective_at
              FROM unnest(provider_entries, p_provider_keys, provider_contents, p_references, p_effective_at)
                   AS hour (id, key, content, reference, effective_at) WHERE id IS NOT NULL) AS entry
    ON CONFLICT (key) DO NOTHING;
    GET DIAGNOSTICS written = ROW_COUNT;
    SELECT count(*) INTO wanted FROM unnest(entries || provider_entries) AS entry (id) WHERE id IS NOT NULL;
    IF written <> wanted THEN
        SELECT known.entries, known.fresh INTO entries, fresh FROM billing_known_entries(entries, p_keys, contents) AS known;
        SELECT known.entries, known.fresh INTO provider_entries, provider_fresh
          FROM billing_known_entries(provider_entries, p_provider_keys, provider_contents) AS known;
    END IF;

    -- The holds first: the wallets are covered after each of the two steps.
    INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, entry_id, created_at)
    SELECT hold, key, content, kind, amount, entry, clock_timestamp()
      FROM (SELECT hold, key, content, 'captured' AS kind, net + tax AS amount, entry
              FROM unnest(p_holds, p_keys, contents, p_nets, p_taxes, entries, fresh)
                   AS hour (hold, key, content, net, tax, entry, is_fresh)
             WHERE entry IS NOT NULL AND is_fresh IS NOT FALSE
            UNION ALL
            SELECT hold, key, sha256(convert_to(concat_ws('|', 'release', hold, amount), 'UTF8')), 'released', amount, NULL
              FROM unnest(p_holds, p_release_keys, p_releases, fresh) AS hour (hold, key, amount, is_fresh)
             WHERE amount > 0 AND is_fresh IS NOT FALSE) AS movement;

    -- An account that does not exist has no number, which the table refuses; so does it one of another currency.
    INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)
    SELECT posting.entry, posting.account, posting.currency, posting.amount
      FROM (SELECT entry, unnest(ARRAY[wallet, revenue, tax_account]) AS account, currency, unnest(ARRAY[-net - tax, net, tax]) AS amount
              FROM unnest(entries, wallets, revenues, taxes, currencies, p_nets, p_taxes, fresh)
                   AS hour (entry, wallet, revenue, tax_account, currency, net, tax, is_fresh)
             WHERE entry IS NOT NULL AND is_fresh IS NOT FALSE
            UNION ALL
            SELECT entry, unnest(ARRAY[cost, payable]), 'USD', unnest(ARRAY[-amount, amount])
              FROM unnest(provider_entries, payables, p_payables, provider_fresh) AS hour (entry, payable, amount, is_fresh)
             WHERE entry IS NOT NULL AND is_fresh IS NOT FALSE) AS posting
     WHERE posting.amount <> 0;

    -- What `captures_match_entries` asks of each capture at the commit, of all of these at once.
    PERFORM billing_refuse_capture(capture.id)
       FROM billing_holdmovement AS capture
       JOIN billing_hold AS hold ON hold.id = capture.hold_id
       LEFT JOIN billing_posting AS posting ON posting.entry_id = capture.entry_id AND posting.account_id = hold.account_id
      WHERE capture.entry_id = ANY (entries)
      GROUP BY capture.id HAVING sum(posting.amount_micros) IS DISTINCT FROM -capture.amount_micros;

    RETURN QUERY
    SELECT hour.line, hour.entry, hour.provider_entry
      FROM unnest(entries, provider_entries) WITH ORDINALITY AS hour (entry, provider_entry, line);
END $$;

-- Of entries that were to be written under keys, some of which are taken: the ids that stand there, and which are new.
CREATE OR REPLACE FUNCTION billing_known_entries(p_entries bigint[], p_keys text[], p_contents bytea[])
RETURNS TABLE (entries bigint[], fresh boolean[]) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM billing_same_entry(hour.key, hour.content)
       FROM unnest(p_entries, p_keys, p_contents) AS hour (entry, key, content) WHERE hour.entry IS NOT NULL;
    RETURN QUERY
    SELECT array_agg(known.id ORDER BY hour.line), array_agg(known.id = hour.entry ORDER BY hour.line)
      FROM unnest(p_entries, p_keys) WITH ORDINALITY AS hour (entry, key, line)
      LEFT JOIN billing_journalentry AS known ON known.key = hour.key AND hour.entry IS NOT NULL;
END $$;
