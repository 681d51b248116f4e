"""`/feeds/skypilot.csv`: our asks and live offers, for SkyPilot."""

from datetime import UTC, datetime

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from common.csv_lines import csv_lines
from marketplace.skypilot_csv import COLUMNS, skypilot_rows

MAX_AGE_SECONDS = 60


@require_safe
def download_skypilot_csv(request: HttpRequest) -> StreamingHttpResponse:
    """Return the file, read from the database as it is sent."""
    lines = csv_lines(COLUMNS, skypilot_rows(now=datetime.now(UTC)))
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="gpu-bourse-skypilot.csv"'
    patch_cache_control(response, public=True, max_age=MAX_AGE_SECONDS)
    return response
