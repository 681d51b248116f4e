"""Which collected rows a better source replaces, decided for all offers in one statement after each refresh.

A cloud that is read directly, and freshly, hides what collectors say about it. Inside a collector the cloud's own file
hides what aggregators resell of the same GPU, so that one machine is not shown twice. Dated list prices hide nothing
and are not hidden: they are marked as what they are.
"""

from datetime import datetime

from django.db import connection

from catalog.freshness import LIVE_FOR, oldest_live_day

STATEMENT = """
WITH standing AS (
    SELECT offer.id, offer.cloud_id, offer.gpu_id, offer.is_list, offer.hidden_by_direct,
           source.is_collector, document.key = cloud.slug AS is_own_file,
           offer.held_back = '' AND NOT offer.is_list AND offer.observed_at > %(live_since)s
               AND (offer.priced_on IS NULL OR offer.priced_on >= %(oldest_live_day)s) AS is_live
    FROM catalog_offer offer
    JOIN catalog_source source ON source.id = offer.source_id
    JOIN catalog_sourcedocument document ON document.id = offer.document_id
    JOIN catalog_cloud cloud ON cloud.id = offer.cloud_id
    WHERE offer.gone_at IS NULL
), read_directly AS (
    SELECT DISTINCT cloud_id FROM standing WHERE is_live AND NOT is_collector
), own_file AS (
    SELECT DISTINCT cloud_id, gpu_id FROM standing WHERE is_live AND is_collector AND is_own_file
), decided AS (
    SELECT standing.id, standing.hidden_by_direct,
           standing.is_collector AND NOT standing.is_list
               AND (read_directly.cloud_id IS NOT NULL OR (own_file.cloud_id IS NOT NULL AND NOT is_own_file)) AS hidden
    FROM standing
    LEFT JOIN read_directly USING (cloud_id)
    LEFT JOIN own_file USING (cloud_id, gpu_id)
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
