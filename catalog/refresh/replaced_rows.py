"""Which collected rows a better source replaces, decided for all offers in one statement after each refresh.

    1. A cloud that is read directly, and freshly, hides what collectors say about it.
    2. A collector's copy of a source that is itself read freshly is hidden: SkyPilot's file of Shadeform, for one.
    3. The cloud's own file inside a collector, or an aggregator's own machines, hide what others resell of that GPU.
    4. Of one machine that several collectors list, only the collector shows that has it in stock, then at the lowest
       price, so that one machine is not shown twice.

Only live rows hide others. Dated list prices hide nothing and are not hidden: they are marked as what they are.
"""

from datetime import datetime

from django.db import connection

from catalog.freshness import LIVE_FOR, oldest_live_day

STATEMENT = """
WITH standing AS (
    SELECT offer.id, offer.cloud_id, offer.gpu_id, offer.is_list, offer.hidden_by_direct, offer.source_id,
           offer.gpu_count, offer.market, offer.term_months, offer.price_usd_per_hour,
           lower(offer.instance_type) AS machine, offer.availability = 'no' AS is_sold_out,
           source.is_collector, source.name AS source_name, document.key AS document_key,
           document.key = cloud.slug AS is_own_file,
           offer.held_back = '' AND NOT offer.is_list AND offer.observed_at > %(live_since)s
               AND (offer.priced_on IS NULL OR offer.priced_on >= %(oldest_live_day)s) AS is_live
    FROM catalog_offer offer
    JOIN catalog_source source ON source.id = offer.source_id
    JOIN catalog_sourcedocument document ON document.id = offer.document_id
    JOIN catalog_cloud cloud ON cloud.id = offer.cloud_id
    WHERE offer.gone_at IS NULL
), read_directly AS (
    SELECT DISTINCT cloud_id FROM standing WHERE is_live AND NOT is_collector
), live_source AS (
    SELECT DISTINCT source_name AS document_key FROM standing WHERE is_live
), known AS (
    SELECT standing.*, live_source.document_key IS NOT NULL AND source_name <> standing.document_key AS is_copy
    FROM standing
    LEFT JOIN live_source USING (document_key)
), own_file AS (
    SELECT DISTINCT cloud_id, gpu_id FROM known WHERE is_live AND is_collector AND is_own_file AND NOT is_copy
), resold AS (
    SELECT id, first_value(is_live) OVER same_machine AND first_value(source_id) OVER same_machine <> source_id
                   AS is_repeated
    FROM known
    WHERE is_collector AND NOT is_own_file AND NOT is_copy AND NOT is_list
    WINDOW same_machine AS (
        PARTITION BY cloud_id, machine, gpu_id, gpu_count, market, term_months
        ORDER BY is_live DESC, is_sold_out, price_usd_per_hour, source_id
    )
), decided AS (
    SELECT known.id, known.hidden_by_direct,
           is_collector AND NOT is_list
               AND (read_directly.cloud_id IS NOT NULL OR is_copy
                    OR (own_file.cloud_id IS NOT NULL AND NOT is_own_file)
                    OR coalesce(resold.is_repeated, false)) AS hidden
    FROM known
    LEFT JOIN read_directly USING (cloud_id)
    LEFT JOIN own_file USING (cloud_id, gpu_id)
    LEFT JOIN resold ON resold.id = known.id
)
UPDATE catalog_offer SET hidden_by_direct = decided.hidden
FROM decided
WHERE catalog_offer.id = decided.id AND decided.hidden_by_direct <> decided.hidden
"""


def hide_replaced_rows(now: datetime) -> int:
    """Bring `hidden_by_direct` of every offer on sale up to date; return how many changed."""
    with connection.cursor() as cursor:
        cursor.execute(STATEMENT, {"live_since": now - LIVE_FOR, "oldest_live_day": oldest_live_day(now)})
        return int(cursor.rowcount)
