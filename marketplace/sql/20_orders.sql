-- Two statements around each decision: read the book under its lock, write what was decided. The decision is Python's.
-- Both keep their plans (force_generic_plan): left to choose, the database would plan some statements at each call.

-- Lock the book, then the wallet, and read what an order needs: its place in line, whether it is known already, whether
-- a webhook is told of it, what
-- its organisation may spend and how it is taxed, what traded in a day (of a
-- book with too few fills for a reference, the median of its asks), and as many of the asks that fit as it wants servers, best price
-- first, then oldest. Volatile: each query sees what was committed while we waited for the locks.
CREATE OR REPLACE FUNCTION marketplace_open_book(
    p_gpu bigint, p_now timestamptz, p_order uuid, p_organisation bigint, p_currency text, p_limit numeric,
    p_gpu_count integer, p_server_count integer, p_hours integer, p_lasts_until timestamptz, p_countries text[],
    p_interconnect text, p_min_ram_gb integer, p_min_vcpus integer, p_min_disk_gb integer,
    p_fills_enough integer,
    OUT place bigint, OUT is_known boolean, OUT is_told boolean, OUT resting_orders bigint,
    OUT account_id bigint, OUT available_micros bigint, OUT owes_anything boolean, OUT is_frozen boolean,
    OUT is_renter boolean, OUT are_books_stopped boolean, OUT is_tax_decided boolean, OUT tax_rate_percent numeric,
    OUT traded_fills bigint, OUT traded_gpus bigint, OUT traded_value numeric, OUT median_ask numeric, OUT asks jsonb
) LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    place := marketplace_lock_book(p_gpu, p_now);
    PERFORM billing_lock_wallet(p_organisation, p_currency);
    SELECT state.*, tax.*,
           EXISTS (SELECT FROM marketplace_order WHERE id = p_order),
           EXISTS (SELECT FROM users_webhookendpoint WHERE organisation_id = p_organisation AND switched_off_at IS NULL),
           (SELECT count(*) FROM marketplace_order
             WHERE organisation_id = p_organisation AND state IN ('open', 'partly_filled')),
           latest.fills_so_far - coalesce(before.fills_so_far, 0), latest.gpus_so_far - coalesce(before.gpus_so_far, 0),
           latest.value_so_far - coalesce(before.value_so_far, 0)
      INTO account_id, available_micros, owes_anything, is_frozen, is_renter, are_books_stopped, is_tax_decided,
           tax_rate_percent, is_known, is_told, resting_orders, traded_fills, traded_gpus, traded_value
      FROM billing_wallet_state(p_organisation, p_currency) AS state
     CROSS JOIN billing_tax_state(p_organisation, p_now) AS tax
      LEFT JOIN (SELECT * FROM marketplace_fill WHERE gpu_id = p_gpu ORDER BY sequence DESC LIMIT 1) AS latest ON true
      LEFT JOIN (SELECT * FROM marketplace_fill WHERE gpu_id = p_gpu AND filled_at <= p_now - interval '24 hours'
                  ORDER BY filled_at DESC, sequence DESC LIMIT 1) AS before ON true;
    IF coalesce(traded_fills, 0) < p_fills_enough THEN
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY offer.price)::numeric INTO median_ask
          FROM marketplace_offers(p_gpu, p_now) AS offer;
    END IF;
    SELECT coalesce(jsonb_agg(jsonb_build_array(
               fitting.listing_id, fitting.server_id, fitting.price::text, fitting.priority, free.device_ids, fitting.min_gpus,
               fitting.max_hours, fitting.available_until, fitting.country, fitting.interconnect, fitting.ram_gb,
               fitting.vcpus, fitting.disk_gb)), '[]')
      INTO asks
      FROM (SELECT offer.* FROM marketplace_offers(p_gpu, p_now) AS offer
             WHERE offer.price <= p_limit AND offer.free_count >= p_gpu_count AND offer.min_gpus <= p_gpu_count
               AND offer.max_hours >= p_hours
               AND (offer.available_until IS NULL OR offer.available_until >= p_lasts_until)
               AND (cardinality(p_countries) = 0 OR offer.country = ANY (p_countries))
               AND (p_interconnect = '' OR offer.interconnect = p_interconnect)
               AND offer.ram_gb >= p_min_ram_gb AND offer.vcpus >= p_min_vcpus AND offer.disk_gb >= p_min_disk_gb
             ORDER BY offer.price, offer.priority LIMIT p_server_count) AS fitting
     CROSS JOIN LATERAL marketplace_free_devices(fitting.server_id) AS free;
END $$;

-- Write an order (or none), fills, and what became of orders that rested. Rows come by their column names. The wallets
-- are locked before, by id.
--   p_order    marketplace_order's columns, and `rest_micros`: what its hold sets aside (0 = it does not rest)
--   p_fills    [{id, rental_id, order_id, listing_id, server_id, price_usd_per_gpu_hour, device_ids ('{1,2}'), lease_until,
--               first_hours, hold_micros, release_micros}]; all else of a rental is its order's
--   p_orders   [{id, state, filled_servers, close_reason}] of orders that rested before
--   p_told     what webhooks are told of it (`users_emit`), but for the GPU's name; nothing is written where none asks
CREATE OR REPLACE FUNCTION marketplace_write(
    p_gpu bigint, p_now timestamptz, p_order jsonb, p_fills jsonb, p_orders jsonb, p_told jsonb
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    hold bigint;
BEGIN
    IF p_order IS NOT NULL THEN
        IF (p_order ->> 'rest_micros')::bigint > 0 THEN
            hold := billing_place_hold('order:' || (p_order ->> 'id'), (p_order ->> 'wallet_id')::bigint,
                                       (p_order ->> 'rest_micros')::bigint, 'order', p_order ->> 'id', NULL);
        END IF;
        INSERT INTO marketplace_order
        SELECT row.* FROM jsonb_populate_record(NULL::marketplace_order, p_order || jsonb_build_object('hold_id', hold)) AS row;
    END IF;
    FOR i IN 0 .. jsonb_array_length(p_fills) - 1 LOOP
        PERFORM marketplace_write_fill(p_gpu, p_now, p_fills -> i);
    END LOOP;
    FOR i IN 0 .. jsonb_array_length(p_orders) - 1 LOOP
        PERFORM marketplace_change_order((p_orders #>> ARRAY[i::text, 'id'])::uuid, p_orders #>> ARRAY[i::text, 'state'],
                                         (p_orders #>> ARRAY[i::text, 'filled_servers'])::integer,
                                         p_orders #>> ARRAY[i::text, 'close_reason'], p_now);
    END LOOP;
    FOR i IN 0 .. jsonb_array_length(p_told) - 1 LOOP
        PERFORM users_emit(jsonb_set(p_told -> i, '{data,gpu}', to_jsonb(gpu.slug)), p_now)
           FROM catalog_gpu AS gpu WHERE gpu.id = p_gpu;
    END LOOP;
    PERFORM marketplace_refresh_best_ask(p_gpu, p_now);
END $$;

-- One fill: money first, then the rows, at the next place in line.
CREATE OR REPLACE FUNCTION marketplace_write_fill(p_gpu bigint, p_now timestamptz, p_fill jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    the_id uuid := p_fill ->> 'id';
    the_rental uuid := p_fill ->> 'rental_id';
    the_listing uuid := p_fill ->> 'listing_id';
    the_price numeric := p_fill ->> 'price_usd_per_gpu_hour';
    the_end timestamptz := p_fill ->> 'lease_until';
    held_micros bigint := p_fill ->> 'hold_micros';
    devices bigint[] := p_fill ->> 'device_ids';
    asked marketplace_order;
    before record;
    hold bigint;
    place bigint;
BEGIN
    SELECT * INTO asked FROM marketplace_order WHERE id = (p_fill ->> 'order_id')::uuid;
    IF p_fill ->> 'release_micros' IS NOT NULL THEN
        PERFORM billing_release(asked.hold_id, 'filled:' || the_id, (p_fill ->> 'release_micros')::bigint);
    END IF;
    hold := billing_place_hold('rental:' || the_rental, asked.wallet_id, held_micros, 'rental', the_rental::text, NULL);
    place := nextval('marketplace_sequence');
    SELECT fills_so_far, gpus_so_far, value_so_far INTO before
      FROM marketplace_fill WHERE gpu_id = p_gpu ORDER BY sequence DESC LIMIT 1;
    WITH fill AS (
        INSERT INTO marketplace_fill (id, order_id, listing_id, gpu_id, gpu_count, price_usd_per_gpu_hour, fee_percent,
                                      device_ids, sequence, filled_at, fills_so_far, gpus_so_far, value_so_far)
        VALUES (the_id, asked.id, the_listing, p_gpu, asked.gpu_count, the_price, asked.fee_percent, devices, place, p_now,
                coalesce(before.fills_so_far, 0) + 1, coalesce(before.gpus_so_far, 0) + asked.gpu_count,
                coalesce(before.value_so_far, 0) + asked.gpu_count * the_price)
    ), rental AS (
        INSERT INTO marketplace_rental (id, fill_id, order_id, organisation_id, listing_id, server_id, gpu_id, wallet_id,
                                        currency, hold_id, gpu_count, device_ids, hours, price_usd_per_gpu_hour, fee_percent,
                                        image, ssh_public_key, state, filled_at, lease_until, end_reason)
        VALUES (the_rental, the_id, asked.id, asked.organisation_id, the_listing, (p_fill ->> 'server_id')::uuid, p_gpu,
                asked.wallet_id, asked.currency, hold, asked.gpu_count, devices, asked.hours, the_price, asked.fee_percent,
                asked.image, asked.ssh_public_key, 'pending', p_now, the_end, '')
    ), held AS (
        INSERT INTO marketplace_heldhours (rental_id, first_hour, hours, fx_rate, fx_on, tax_rate_percent, held_micros, held_at)
        VALUES (the_rental, 0, (p_fill ->> 'first_hours')::integer, asked.fx_rate, asked.fx_on, asked.tax_rate_percent,
                held_micros, p_now)
    ), event AS (
        INSERT INTO marketplace_rentalevent (rental_id, kind, at, detail) VALUES (the_rental, 'pending', p_now, '{}')
    ), offer AS (
        UPDATE marketplace_listing SET free_count = free_count - asked.gpu_count WHERE id = the_listing
    )
    -- A device is free as soon as its lease is closed, whatever two clocks say: the next lease begins where it ended.
    INSERT INTO marketplace_lease (device_id, rental_id, period, taken_sequence)
    SELECT device.id, the_rental, tstzrange(greatest(p_now, upper(last.period)), the_end), place
      FROM unnest(devices) AS device (id)
      LEFT JOIN LATERAL (SELECT period FROM marketplace_lease WHERE device_id = device.id
                          ORDER BY taken_sequence DESC LIMIT 1) AS last ON true
     ORDER BY device.id;
END $$;

-- Move an order that rests; a closed one gets its place and time, and whatever its hold still has goes back.
CREATE OR REPLACE FUNCTION marketplace_change_order(
    p_id uuid, p_state text, p_filled_servers integer, p_close_reason text, p_now timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    is_closed boolean := p_state NOT IN ('open', 'partly_filled');
    hold bigint;
BEGIN
    UPDATE marketplace_order
       SET state = p_state, filled_servers = p_filled_servers, close_reason = coalesce(p_close_reason, ''),
           closed_at = CASE WHEN is_closed THEN p_now END,
           closed_sequence = CASE WHEN is_closed THEN nextval('marketplace_sequence') END
     WHERE id = p_id AND state IN ('open', 'partly_filled') RETURNING hold_id INTO hold;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % does not rest', p_id USING ERRCODE = 'MB001';
    END IF;
    IF is_closed THEN
        PERFORM billing_release(hold, 'closed:' || p_id, NULL);
    END IF;
END $$;
