-- How long the platform itself was up between two instants.
CREATE OR REPLACE FUNCTION marketplace_up_time(p_from timestamptz, p_until timestamptz) RETURNS interval
LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(least(last_seen_at, p_until) - greatest(started_at, p_from)), '0')
      FROM marketplace_upspan WHERE started_at < p_until AND last_seen_at > p_from
$$;

-- Running rentals whose server was silent for longer than `p_longer` of the platform's up time while they were running
-- and paid: the last beat before their first such silence. Beats that come again afterwards change nothing: the answer
-- does not depend on when it is asked for. One plain statement, so that a caller's condition reaches the rentals.
CREATE OR REPLACE FUNCTION marketplace_silences(p_now timestamptz, p_longer interval)
RETURNS TABLE (rental_id uuid, last_beat_at timestamptz) LANGUAGE sql STABLE AS $$
    SELECT rental.id, min(silence.since)
      FROM marketplace_rental AS rental
     CROSS JOIN LATERAL (
           SELECT span.last_beat_at AS since,
                  least(lead(span.first_beat_at) OVER (ORDER BY span.first_beat_at), rental.paid_until, p_now) AS until
             FROM marketplace_beatspan AS span
            WHERE span.server_id = rental.server_id AND span.first_beat_at <= p_now
           ) AS silence
     WHERE rental.state = 'running' AND silence.until > rental.ready_at AND silence.until - silence.since > p_longer
       AND marketplace_up_time(silence.since, silence.until) > p_longer
     GROUP BY rental.id
$$;
