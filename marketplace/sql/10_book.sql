-- The book of a GPU: one line for everything that happens in it, and what is for rent at a moment.

CREATE SEQUENCE IF NOT EXISTS marketplace_sequence;

-- What a listing offers from this place in the line on, ending what it offered before: the past of a book is these rows.
CREATE OR REPLACE FUNCTION marketplace_write_terms(p_listing uuid, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    place bigint := nextval('marketplace_sequence');
BEGIN
    UPDATE marketplace_listing AS listing
       SET is_for_rent = listing.state = 'active' AND server.verified_at IS NOT NULL AND server.withdrawn_at IS NULL
                         AND server.is_heard
      FROM marketplace_server AS server WHERE listing.id = p_listing AND server.id = listing.server_id;
    UPDATE marketplace_listingterms SET to_sequence = place WHERE listing_id = p_listing AND to_sequence IS NULL;
    INSERT INTO marketplace_listingterms (listing_id, price_usd_per_gpu_hour, min_gpus, max_hours, available_until,
                                          is_for_rent, priority, from_sequence, since)
    SELECT id, price_usd_per_gpu_hour, min_gpus, max_hours, available_until, is_for_rent, priority, place, p_now
      FROM marketplace_listing WHERE id = p_listing;
END $$;

-- Whoever changes a book holds its lock until the commit. Returns the next place in its line. Silence is an event of
-- the line as any other: servers not heard of for a minute leave before anything is decided, and only a beat brings
-- them back. So what was for rent at a place is told by rows alone, whatever clocks said.
CREATE OR REPLACE FUNCTION marketplace_lock_book(p_gpu bigint, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    silent uuid;
BEGIN
    PERFORM pg_advisory_xact_lock(8501, p_gpu::integer);
    FOR silent IN UPDATE marketplace_server SET is_heard = false
                   WHERE gpu_id = p_gpu AND is_heard AND last_beat_at < p_now - interval '60 seconds' RETURNING id LOOP
        PERFORM marketplace_write_terms(id, p_now) FROM marketplace_listing WHERE server_id = silent AND state <> 'ended';
    END LOOP;
    RETURN nextval('marketplace_sequence');
END $$;

-- The listings that sell at a moment, with their servers. Plain SQL, so that a caller's conditions reach the index.
-- Whoever reads without the lock sees no silent server either.
CREATE OR REPLACE FUNCTION marketplace_offers(p_gpu bigint, p_now timestamptz)
RETURNS TABLE (listing_id uuid, server_id uuid, price numeric, priority bigint, free_count integer, min_gpus integer,
               max_hours integer, available_until timestamptz, country text, interconnect text, ram_gb integer,
               vcpus integer, disk_gb integer)
LANGUAGE sql STABLE AS $$
    SELECT listing.id, server.id, listing.price_usd_per_gpu_hour, listing.priority, listing.free_count::integer,
           listing.min_gpus::integer, listing.max_hours::integer, listing.available_until, server.country::text,
           server.interconnect::text, server.ram_gb::integer, server.vcpus::integer, server.disk_gb::integer
      FROM marketplace_listing AS listing
      JOIN marketplace_server AS server ON server.id = listing.server_id
     WHERE listing.gpu_id = p_gpu AND listing.is_for_rent AND listing.free_count > 0
       AND server.last_beat_at >= p_now - interval '60 seconds'
$$;

-- A server's devices without an open lease, in the order of their index.
CREATE OR REPLACE FUNCTION marketplace_free_devices(p_server uuid) RETURNS TABLE (device_ids bigint[])
LANGUAGE sql STABLE AS $$
    SELECT array_agg(device.id ORDER BY device.index)
      FROM marketplace_device AS device
     WHERE device.server_id = p_server
       AND NOT EXISTS (SELECT FROM marketplace_lease AS lease
                        WHERE lease.device_id = device.id AND lease.closed_sequence IS NULL)
$$;

-- The one row that pages, prices and sizing read: the cheapest device one can have for an hour without any wish. Under
-- the lock silent servers have left.
CREATE OR REPLACE FUNCTION marketplace_refresh_best_ask(p_gpu bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    best record;
BEGIN
    SELECT min(price_usd_per_gpu_hour) AS price, sum(free_count) AS devices INTO best
      FROM marketplace_listing
     WHERE gpu_id = p_gpu AND is_for_rent AND free_count > 0 AND min_gpus = 1
       AND (available_until IS NULL OR available_until >= p_now + interval '1 hour 10 minutes');
    IF best.price IS NULL THEN
        DELETE FROM catalog_bestask WHERE gpu_id = p_gpu;
    ELSE
        INSERT INTO catalog_bestask (gpu_id, price_usd_per_gpu_hour, devices_available, observed_at)
        VALUES (p_gpu, best.price, best.devices, p_now)
        ON CONFLICT (gpu_id) DO UPDATE
           SET price_usd_per_gpu_hour = excluded.price_usd_per_gpu_hour,
               devices_available = excluded.devices_available,
               observed_at = greatest(excluded.observed_at, catalog_bestask.observed_at)
         -- A row that says the same is confirmed now and then, not at every order: pages are kept by its version.
         WHERE (catalog_bestask.price_usd_per_gpu_hour, catalog_bestask.devices_available)
               <> (excluded.price_usd_per_gpu_hour, excluded.devices_available)
            OR catalog_bestask.observed_at < excluded.observed_at - interval '20 seconds';
    END IF;
END $$;
