"""A statement as comma-separated text, streamed: exact to the micro, in one order of columns for page and call."""

from collections.abc import Iterable, Iterator

from django.http import StreamingHttpResponse

from billing.queries.statement import StatementLine
from billing.serializers import StatementLineSerializer
from common.csv_lines import csv_lines

HEADER = ("id", "at", "kind", "amount", "balance_after", "currency", "reference_type", "reference_id", "description")
_FIELDS = StatementLineSerializer().fields


def statement_csv(lines: Iterable[StatementLine], *, currency: str) -> StreamingHttpResponse:
    """Return the lines of a wallet in this currency as a file."""
    headers = {"Content-Disposition": f'attachment; filename="statement-{currency}.csv"'}
    text = csv_lines(HEADER, _cells(lines, currency))
    return StreamingHttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _cells(lines: Iterable[StatementLine], currency: str) -> Iterator[list[object]]:
    for line in lines:
        yield [
            line.id,
            _FIELDS["at"].to_representation(line.at),
            line.kind,
            _FIELDS["amount"].to_representation(line.amount_micros),
            _FIELDS["balance_after"].to_representation(line.balance_after_micros),
            currency,
            line.reference_type,
            line.reference_id,
            line.words,
        ]
