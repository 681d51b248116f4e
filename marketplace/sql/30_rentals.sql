-- A rental is over: its leases are closed at that place in the book's line, and end when they were given up. A lease
-- keeps at least an instant, so that the next one of its device finds where it ended.

CREATE OR REPLACE FUNCTION marketplace_close_leases(p_rental uuid, p_now timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    place bigint := nextval('marketplace_sequence');
    closed integer;
BEGIN
    UPDATE marketplace_lease
       SET closed_sequence = place,
           period = tstzrange(lower(period), greatest(lower(period) + interval '1 microsecond', least(upper(period), p_now)))
     WHERE rental_id = p_rental AND closed_sequence IS NULL;
    GET DIAGNOSTICS closed = ROW_COUNT;
    UPDATE marketplace_listing SET free_count = free_count + closed
     WHERE server_id = (SELECT server_id FROM marketplace_rental WHERE id = p_rental) AND state <> 'ended';
    RETURN closed;
END $$;
