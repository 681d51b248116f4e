-- Rental hours become money: the next due hour of each of many rentals, in one statement. The same formula stands in
-- `marketplace/settlement/formula.py`, the same seconds in `seconds.py`; a test holds them equal.

-- A settled hour stays as it is; it can be marked as reversed, once.
CREATE OR REPLACE FUNCTION marketplace_refuse_line_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR OLD.reversed_at IS NOT NULL OR NEW.reversed_at IS NULL
       OR to_jsonb(NEW) - '{reversed_at,reversal_entry_id,provider_reversal_entry_id}'::text[]
          <> to_jsonb(OLD) - '{reversed_at,reversal_entry_id,provider_reversal_entry_id}'::text[] THEN
        RAISE EXCEPTION 'a settled hour stays: no %', TG_OP USING ERRCODE = 'LB003';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER lines_are_reversed_at_most BEFORE UPDATE ON marketplace_settlement
    FOR EACH ROW EXECUTE FUNCTION marketplace_refuse_line_change();
CREATE OR REPLACE TRIGGER lines_stay BEFORE DELETE OR TRUNCATE ON marketplace_settlement
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();

-- The quotient rounded to a whole number, a half to the even one; PostgreSQL's own round() is another. Not for negatives.
CREATE OR REPLACE FUNCTION marketplace_half_even(p_amount numeric, p_by numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (div(p_amount, p_by)
            + CASE WHEN 2 * mod(p_amount, p_by) > p_by
                     OR 2 * mod(p_amount, p_by) = p_by AND mod(div(p_amount, p_by), 2) = 1 THEN 1 ELSE 0 END)::bigint
$$;

-- The quotient rounded up to a whole number.
CREATE OR REPLACE FUNCTION marketplace_round_up(p_amount numeric, p_by numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (div(p_amount, p_by) + CASE WHEN mod(p_amount, p_by) > 0 THEN 1 ELSE 0 END)::bigint
$$;

-- What an hour comes to: `settle_hour` of formula.py. `p_price` is the price of all devices; the second held hour may be
-- missing (0 seconds, nulls), and so may the decided rate: then each part is taxed as it was held.
CREATE OR REPLACE FUNCTION marketplace_hour_amounts(
    p_price numeric, p_fee_percent numeric, p_seconds bigint, p_fx_rate numeric, p_held_rate numeric,
    p_next_seconds bigint, p_next_fx_rate numeric, p_next_held_rate numeric, p_rate numeric
) RETURNS TABLE (net bigint, tax bigint, usd_net bigint, payable bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT taxed.net + taxed.added - taxed.tax, taxed.tax, taxed.usd_net, taxed.payable
      FROM (
        SELECT grossed.*, CASE WHEN grossed.is_promised
                               THEN marketplace_half_even((grossed.net + grossed.added) * p_rate, 100 + p_rate)
                               ELSE grossed.added END AS tax
          FROM (
            SELECT netted.*, CASE WHEN weight = 0 THEN 0 ELSE marketplace_half_even(netted.net * taxed_weight, weight * 100) END AS added
              FROM (
                SELECT weighed.*, marketplace_half_even(p_price * weight * 1000000, 3600) AS net,
                       marketplace_half_even(p_price * (p_seconds + p_next_seconds) * 1000000, 3600) AS usd_net,
                       marketplace_half_even(p_price * (p_seconds + p_next_seconds) * (100 - p_fee_percent) * 1000000, 360000) AS payable
                  FROM (
                    SELECT p_seconds * p_fx_rate + p_next_seconds * coalesce(p_next_fx_rate, 0) AS weight,
                           p_seconds * p_fx_rate * least(p_rate, p_held_rate)
                               + p_next_seconds * coalesce(p_next_fx_rate * least(p_rate, p_next_held_rate), 0) AS taxed_weight,
                           coalesce(p_seconds > 0 AND p_held_rate < p_rate OR p_next_seconds > 0 AND p_next_held_rate < p_rate, false)
                               AS is_promised
                    OFFSET 0) AS weighed
                OFFSET 0) AS netted
            OFFSET 0) AS grossed
        OFFSET 0) AS taxed
$$;

-- How much of [p_from, p_to) lies in some ranges of seconds; strict, so that a rental without a gap costs nothing here.
CREATE OR REPLACE FUNCTION marketplace_seconds_within(p_ranges int8multirange, p_from bigint, p_to bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(sum(upper(part) - lower(part)), 0)::bigint
      FROM unnest(p_ranges * int8multirange(int8range(p_from, greatest(p_from, p_to)))) AS part
$$;

-- Settle the next hour of up to `p_limit` rentals after `p_after` that have one due at `p_until`, or are over and have
-- none left; `p_rental` looks at one rental alone. An hour is due an hour and five minutes after its start, or at once
-- when its rental is over. Locks the rentals by id, then holds and accounts (billing_settle). Returns the last rental
-- looked at (null: there was none), how many there were, how many hours were settled, and how many were not because
-- they come to more than their hold, which must not be.
CREATE OR REPLACE FUNCTION marketplace_settle(
    p_until timestamptz, p_now timestamptz, p_after uuid, p_limit integer, p_rental uuid,
    OUT last_rental uuid, OUT rentals bigint, OUT lines bigint, OUT above_hold bigint
) LANGUAGE plpgsql SET work_mem = '64MB' SET plan_cache_mode = force_custom_plan SET jit = off AS $$
DECLARE
    ids uuid[];
BEGIN
    SELECT array_agg(due.id ORDER BY due.id) INTO ids FROM (
        SELECT rental.id FROM marketplace_rental AS rental
         WHERE rental.ready_at IS NOT NULL AND rental.fully_settled_at IS NULL
           AND rental.id > p_after AND (p_rental IS NULL OR rental.id = p_rental)
           AND (rental.ended_at IS NOT NULL
                OR coalesce(rental.settled_until, rental.ready_at) < least(rental.stop_requested_at, rental.paid_until))
           AND (rental.state <> 'interrupted' OR rental.unbilled_from IS NOT NULL)
           AND least(coalesce(rental.settled_until, date_trunc('hour', rental.ready_at, 'UTC')) + interval '1 hour 5 minutes',
                     rental.ended_at) <= p_until
         ORDER BY rental.id LIMIT p_limit FOR NO KEY UPDATE) AS due;
    rentals := coalesce(cardinality(ids), 0);
    last_rental := ids[rentals];
    lines := 0;
    above_hold := 0;
    IF rentals > 0 THEN
        SELECT hour.lines, hour.above_hold INTO lines, above_hold FROM marketplace_settle_next_hour(ids, p_now) AS hour;
    END IF;
END $$;

-- The work of one statement, whose view of the rows begins after their rentals were locked. Times are epoch seconds.
CREATE OR REPLACE FUNCTION marketplace_settle_next_hour(
    p_rentals uuid[], p_now timestamptz, OUT lines bigint, OUT above_hold bigint
) LANGUAGE plpgsql SET work_mem = '64MB' SET plan_cache_mode = force_custom_plan SET jit = off AS $$
BEGIN
    WITH rental AS MATERIALIZED (
        SELECT r.id, r.hold_id, r.organisation_id, r.server_id, provider.provider_id, r.hours, r.gpu_count, r.fee_percent,
               r.price_usd_per_gpu_hour * r.gpu_count AS price, r.ended_at,
               coalesce(r.settled_until, date_trunc('hour', r.ready_at, 'UTC')) AS hour_at,
               ceil(extract(epoch FROM r.ready_at))::bigint AS ready,
               floor(extract(epoch FROM least(r.stop_requested_at, r.paid_until, r.unbilled_from)))::bigint AS ends
          FROM unnest(p_rentals) AS wanted (id)
          JOIN marketplace_rental AS r ON r.id = wanted.id
          JOIN marketplace_server AS provider ON provider.id = r.server_id
    ), span AS MATERIALIZED (  -- what of the hour may be billed: [starts, stops); an hour of its own follows at `next`
        SELECT rental.*, greatest(hour.starts, rental.ready) AS starts,
               greatest(hour.starts, rental.ready, least(hour.starts + 3600, rental.ends)) AS stops,
               hour.starts + 3600 AS next, hour.starts < rental.ends AND rental.ready < rental.ends AS is_line
          FROM rental CROSS JOIN LATERAL (SELECT extract(epoch FROM rental.hour_at)::bigint AS starts OFFSET 0) AS hour
    ), silence AS (  -- between two spans of beats, or from the last one to where we know
        SELECT span.id, span.starts, span.stops, known.from_at, known.to_at
          FROM span
          LEFT JOIN LATERAL (
              SELECT first_beat_at, last_beat_at FROM marketplace_beatspan AS beats
               WHERE beats.server_id = span.server_id AND beats.first_beat_at <= to_timestamp(span.starts)
               ORDER BY beats.first_beat_at DESC LIMIT 1
          ) AS heard ON true
         CROSS JOIN LATERAL (
              SELECT beats.last_beat_at AS from_at, least(
                         (SELECT min(first_beat_at) FROM marketplace_beatspan AS later
                           WHERE later.server_id = span.server_id AND later.first_beat_at > beats.first_beat_at),
                         span.ended_at, p_now) AS to_at
                FROM marketplace_beatspan AS beats
               WHERE beats.server_id = span.server_id AND beats.first_beat_at < to_timestamp(span.stops)
                 AND beats.first_beat_at >= coalesce(heard.first_beat_at, to_timestamp(span.starts))
         ) AS known
         WHERE span.is_line AND (heard.last_beat_at IS NULL OR heard.last_beat_at < to_timestamp(span.stops))
    ), gap AS (  -- only as far as we were up ourselves, each end to the whole second outside
        SELECT silence.id, range_agg(int8range(
                   floor(extract(epoch FROM greatest(silence.from_at, up.started_at)))::bigint,
                   ceil(extract(epoch FROM least(silence.to_at, up.until_at)))::bigint)) AS ranges
          FROM silence
          JOIN (SELECT started_at, CASE WHEN last_seen_at >= p_now - interval '60 seconds' THEN greatest(last_seen_at, p_now)
                                        ELSE last_seen_at END AS until_at FROM marketplace_upspan) AS up
            ON up.started_at < silence.to_at AND up.until_at > silence.from_at
         WHERE silence.to_at > silence.from_at + interval '60 seconds'
           AND silence.from_at < to_timestamp(silence.stops) AND silence.to_at > to_timestamp(silence.starts)
         GROUP BY silence.id
    ), counted AS MATERIALIZED (  -- the seconds of the one or two held hours it touches
        SELECT span.*, gap.ranges,
               first.fx_rate, first.tax_rate_percent AS held_rate,
               second.fx_rate AS next_fx_rate, second.tax_rate_percent AS next_held_rate,
               split.at - span.starts - coalesce(marketplace_seconds_within(gap.ranges, span.starts, split.at), 0) AS first_seconds,
               span.stops - split.at - coalesce(marketplace_seconds_within(gap.ranges, split.at, span.stops), 0) AS next_seconds,
               decision.id AS decision_id, decision.rate_percent AS rate
          FROM span
          LEFT JOIN gap ON gap.id = span.id
          JOIN marketplace_heldhours AS first  -- a lot has one row for all of its hours, else each has its own
            ON first.rental_id = span.id
           AND first.first_hour = CASE WHEN span.hours IS NULL THEN greatest(0, least(span.starts, span.ends - 1) - span.ready) / 3600 ELSE 0 END
         CROSS JOIN LATERAL (SELECT greatest(span.starts, least(
              span.stops, span.ready + (first.first_hour + first.hours) * 3600::bigint)) AS at) AS split
          LEFT JOIN marketplace_heldhours AS second
            ON second.rental_id = span.id AND second.first_hour = first.first_hour + 1 AND span.hours IS NULL AND split.at < span.stops
          LEFT JOIN billing_taxdecision AS decision
            ON decision.organisation_id = span.organisation_id AND decision.valid_from <= span.hour_at
           AND (decision.valid_to IS NULL OR decision.valid_to > span.hour_at)
    ), taxed AS MATERIALIZED (
        SELECT counted.*, first_seconds + next_seconds AS seconds, amounts.*, amounts.net + amounts.tax AS gross
          FROM counted, LATERAL marketplace_hour_amounts(
                   price, fee_percent, first_seconds, fx_rate, held_rate, next_seconds, next_fx_rate, next_held_rate, rate) AS amounts
    ), line AS MATERIALIZED (  -- and what the hold may give back
        SELECT taxed.*, hold.remaining_micros AS held,
               row_number() OVER (PARTITION BY taxed.gross <= hold.remaining_micros ORDER BY taxed.id) AS number,
               CASE WHEN taxed.next >= taxed.ends THEN 0
                    WHEN taxed.hours IS NOT NULL
                    THEN marketplace_round_up(price * fx_rate * (100 + held_rate) * (ends - next) * 1000000, 360000)
                    ELSE (SELECT marketplace_round_up(sum(price * held.fx_rate * (100 + held.tax_rate_percent) * 1000000
                                     * (least(taxed.ends, taxed.ready + (held.first_hour + 1) * 3600::bigint)
                                        - greatest(taxed.next, taxed.ready + held.first_hour * 3600::bigint))), 360000)
                            FROM marketplace_heldhours AS held
                           WHERE held.rental_id = taxed.id
                             AND held.first_hour BETWEEN (taxed.next - taxed.ready) / 3600 AND (taxed.ends - 1 - taxed.ready) / 3600)
               END + CASE WHEN taxed.next >= taxed.ends THEN 0 ELSE 2 * ((taxed.ends - 1) / 3600 - taxed.next / 3600 + 1) END AS needed
          FROM taxed JOIN billing_hold AS hold ON hold.id = taxed.hold_id
    ), posted AS MATERIALIZED (
        SELECT settled.line AS number, settled.entry_id, settled.provider_entry_id
          FROM (SELECT array_agg(hold_id ORDER BY number) AS holds, array_agg(id::text ORDER BY number) AS names,
                       array_agg(to_timestamp(stops) ORDER BY number) AS ends, array_agg(net ORDER BY number) AS nets,
                       array_agg(tax ORDER BY number) AS taxes, array_agg(provider_id ORDER BY number) AS providers,
                       array_agg(payable ORDER BY number) AS payables,
                       array_agg(greatest(held - gross - needed, 0) ORDER BY number) AS releases,
                       array_agg(concat(id, ':', to_char(hour_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) ORDER BY number) AS keys
                  FROM line WHERE gross <= held) AS given,
               LATERAL billing_settle(
                   given.holds, given.names, given.ends,
                   (SELECT array_agg('settle:' || key) FROM unnest(given.keys) AS key), given.nets, given.taxes,
                   given.providers, (SELECT array_agg('earn:' || key) FROM unnest(given.keys) AS key), given.payables,
                   (SELECT array_agg('rest:' || key) FROM unnest(given.keys) AS key), given.releases) AS settled
    ), settled AS (
        INSERT INTO marketplace_settlement (
            rental_id, hour, billed_seconds, gap_seconds, fx_rate, held_tax_rate_percent, next_seconds, next_fx_rate,
            next_held_tax_rate_percent, tax_decision_id, tax_rate_percent, net_micros, tax_micros, gross_micros,
            usd_net_micros, payable_micros, fee_micros, entry_id, provider_entry_id, settled_at)
        SELECT line.id, line.hour_at, line.seconds, line.stops - line.starts - line.seconds, line.fx_rate, line.held_rate,
               line.next_seconds, line.next_fx_rate, line.next_held_rate, line.decision_id, line.rate, line.net,
               line.tax, line.gross, line.usd_net, line.payable, line.usd_net - line.payable, posted.entry_id,
               posted.provider_entry_id, p_now
          FROM line JOIN posted ON posted.number = line.number
         WHERE line.is_line AND line.gross <= line.held
         ORDER BY line.number
        ON CONFLICT (rental_id, hour) DO NOTHING RETURNING 1
    ), moved AS (
        UPDATE marketplace_rental AS r
           SET settled_until = CASE WHEN line.is_line THEN line.hour_at + interval '1 hour' ELSE r.settled_until END,
               fully_settled_at = CASE WHEN line.ended_at IS NOT NULL AND (line.next >= line.ends OR NOT line.is_line) THEN p_now END
          FROM line WHERE r.id = line.id AND line.gross <= line.held
    )
    SELECT (SELECT count(*) FROM settled), (SELECT count(*) FROM line WHERE gross > held) INTO lines, above_hold;
END $$;
