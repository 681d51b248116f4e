-- Write an event down for the endpoints of its organisation that asked for its type, in the caller's transaction.
-- Nothing is written where no endpoint asks, nor a second time for the same type, subject and key. Returns whether it was.
--   p_event {id, organisation_id, type, subject_id, key, data}

CREATE OR REPLACE FUNCTION users_emit(p_event jsonb, p_at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    endpoints uuid[];
BEGIN
    -- The lock keeps an endpoint that is being removed from getting a delivery that nobody would find.
    SELECT array_agg(asking.id) INTO endpoints
      FROM (SELECT endpoint.id FROM users_webhookendpoint AS endpoint
             WHERE endpoint.organisation_id = (p_event ->> 'organisation_id')::bigint
               AND endpoint.switched_off_at IS NULL AND (p_event ->> 'type') = ANY (endpoint.types)
             ORDER BY endpoint.id FOR KEY SHARE) AS asking;
    IF endpoints IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO users_webhookevent (id, organisation_id, type, subject_id, key, data, occurred_at)
    VALUES ((p_event ->> 'id')::uuid, (p_event ->> 'organisation_id')::bigint, p_event ->> 'type',
            p_event ->> 'subject_id', p_event ->> 'key', p_event -> 'data', p_at)
    ON CONFLICT (organisation_id, type, subject_id, key) DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO users_webhookdelivery (event_id, endpoint_id, state, tries, next_attempt_at)
    SELECT (p_event ->> 'id')::uuid, asking.id, 'waiting', 0, p_at FROM unnest(endpoints) AS asking (id);
    RETURN true;
END $$;
