"""Read one price source, or every source that is due, and store what it says.

Steps of a refresh:
    1. take the source's lock; another refresh of it, here or elsewhere, leaves at once
    2. fetch every body: conditional, capped, https only; or take saved copies. No transaction is open
    3. parse each body whole; one that is not what the source promises changes nothing
    4. one transaction per body: keep it as read, name its GPUs, check its prices, write what differs, mark what is gone
    5. note unclear names, decide anew which collected rows a direct source replaces, and say how the source stands

A body that did not change renews its offers. One failing body never blocks another, and never empties what was there.
A second run changes nothing.
"""

import hashlib
import logging
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from catalog.models import Cloud, Gpu, Offer, RawBody, SourceDocument
from catalog.models import Source as SourceRow
from catalog.names import Resolution
from catalog.refresh import bodies
from catalog.refresh.bands import bands_at
from catalog.refresh.bodies import Fetch, NothingSaved
from catalog.refresh.due import due_after_failure
from catalog.refresh.locks import lock_offers_for_all_rows, lock_offers_for_own_rows, only_refresh_of
from catalog.refresh.offers import RunFacts, Stored, convert_anew, store_offers
from catalog.refresh.replaced_rows import hide_replaced_rows
from catalog.refresh.reports import DocumentReport, RefreshReport, reasons
from catalog.refresh.review_queue import note_names
from catalog.source_days import count_refresh
from catalog.sources import ALL_SOURCES, source_named
from catalog.sources.base import Body, BodyRejected, OfferRow, PacedSource, Source
from catalog.sources.fetching import NotModified
from fx.queries import NoRate, UsdRate, usd_rate

__all__ = ["DocumentReport", "NothingSaved", "RefreshReport", "refresh_due_sources", "refresh_source"]

log = logging.getLogger(__name__)

KEPT_BODIES = 5
SUDDEN_LOSS = timedelta(hours=24)


def refresh_due_sources(*, now: datetime, only: str | None = None) -> list[RefreshReport]:
    """Refresh every source whose time has come, or the one named if its time has.

    Each is claimed by one conditional update: two beats refresh once. Raises KeyError for an unknown name. A failing
    one waits longer each time, up to 6 hours.
    """
    reports = []
    for adapter in ALL_SOURCES if only is None else [source_named(only)]:
        row = _source_row(adapter)
        is_due = Q(due_at__isnull=True) | Q(due_at__lte=now)
        next_at = now + timedelta(minutes=row.interval_minutes)
        if SourceRow.objects.filter(is_due, pk=row.pk).update(due_at=next_at):
            try:
                report = refresh_source(source_name=adapter.name, now=now)
            except Exception:
                # One source's mistake must not keep the others from being read.
                log.exception("%s was not refreshed", adapter.name)
                continue
            if report.is_failure:
                _wait_longer(row, now)
            reports.append(report)
    return reports


def _wait_longer(before: SourceRow, now: datetime) -> None:
    """Move the next attempt out; `before` is the source as it stood before the failure at `now`."""
    failed_before = before.state == SourceRow.State.FAILING
    due_at = due_after_failure(
        now=now,
        interval=timedelta(minutes=before.interval_minutes),
        failed_before_at=before.last_attempt_at if failed_before else None,
    )
    SourceRow.objects.filter(pk=before.pk).update(due_at=due_at)


def refresh_source(
    *,
    source_name: str,
    now: datetime,
    from_path: Path | None = None,
    observed_at: datetime | None = None,
    fetch: Fetch | None = None,
) -> RefreshReport:
    """Refresh one source now, over the network or from the copies at `from_path`, read as of `observed_at` (`now`).

    Raises KeyError for an unknown source and NothingSaved when `from_path` holds none of its bodies; what goes wrong
    with a body is in the report and on the source's row, not raised.
    """
    adapter = source_named(source_name)
    readings = bodies.saved(adapter, from_path, observed_at or now) if from_path else None
    source = _source_row(adapter)
    with only_refresh_of(source) as is_ours:
        if not is_ours:
            return RefreshReport(source_name=source_name, not_read="another refresh of it is running")
        if from_path is None and bodies.lacks_key(adapter):
            SourceRow.objects.filter(pk=source.pk).update(
                state=SourceRow.State.NEEDS_KEY, last_attempt_at=now, last_error=""
            )
            return RefreshReport(source_name=source_name, not_read="it needs a key")
        run = _Run(adapter=adapter, source=source, now=now, observed_at=observed_at or now)
        return _refresh(run, readings or bodies.fetched(adapter, source, now, fetch), is_replay=from_path is not None)


@dataclass(frozen=True, kw_only=True)
class _Run:
    adapter: Source
    source: SourceRow
    now: datetime
    observed_at: datetime


def _refresh(run: _Run, readings: Mapping[str, bodies.Reading], *, is_replay: bool) -> RefreshReport:
    whole = {key: reading for key, reading in readings.items() if isinstance(reading, Body)}
    companions = {document.key for document in run.adapter.documents() if document.companion_of}
    facts = RunFacts(
        now=run.now,
        observed_at=run.observed_at,
        clouds=dict(Cloud.objects.values_list("slug", "pk")),
        gpus=dict(Gpu.objects.values_list("slug", "pk")),
        bands=bands_at(run.now),
        rates={},
        dated_on=None,
        keeps_verdicts=False,
    )
    reports: list[DocumentReport] = []
    unnamed: list[tuple[OfferRow, Resolution]] = []
    named: list[OfferRow] = []
    for key, reading in readings.items():
        if key in companions:
            _keep_companion(run, key, reading)
            continue
        report, stored = _read_document(run, key, reading, whole, facts)
        reports.append(report)
        if stored:
            unnamed += stored.unnamed
            named += stored.named
    with transaction.atomic():
        lock_offers_for_all_rows()
        note_names(run.source, unnamed, named, run.now)
        hide_replaced_rows(run.now)
        _say_how_it_stands(run, reports, is_replay=is_replay)
    return RefreshReport(source_name=run.adapter.name, documents=reports)


def _read_document(
    run: _Run, key: str, reading: bodies.Reading, whole: Mapping[str, Body], facts: RunFacts
) -> tuple[DocumentReport, Stored | None]:
    """Parse and store one body, or say why not; whatever goes wrong stays with this document."""
    if isinstance(reading, NotModified):
        return _renew(run, key, reading), None
    if isinstance(reading, bodies.Unread):
        return _refuse(run, key, reading.reason), None
    try:
        rows = list(run.adapter.parse(reading, dict(whole)))
        if not rows:
            raise BodyRejected("it holds no offer")
        if not facts.gpus or not facts.clouds:
            raise BodyRejected("the catalogue of GPUs and clouds is empty: run load_catalogue first")
        return _store(run, reading, rows, facts)
    except BodyRejected as why:
        return _refuse(run, key, str(why)), None
    except Exception as why:
        # An adapter's mistake about one body must not keep the other bodies from being read.
        log.exception("%s/%s could not be read", run.adapter.name, key)
        return _refuse(run, key, f"could not be read: {type(why).__name__}"), None


@transaction.atomic
def _store(run: _Run, body: Body, rows: Sequence[OfferRow], facts: RunFacts) -> tuple[DocumentReport, Stored]:
    lock_offers_for_own_rows()
    document, _created = SourceDocument.objects.select_for_update().get_or_create(
        source=run.source, key=body.document.key
    )
    if not body.replayed:
        _refuse_sudden_loss(document, len(rows), run.now)
    is_known = _keep_body(run, document, body)
    own_facts = replace(
        facts,
        rates=_rates({row.currency for row in rows}, run.now.date()),
        dated_on=document.content_first_seen_at.date()
        if body.document.dated_by_content and document.content_first_seen_at
        else None,
        keeps_verdicts=is_known,
    )
    convertible = [row for row in rows if row.currency == "USD" or row.currency in own_facts.rates]
    without_rate = len(rows) - len(convertible)
    stored = store_offers(document, convertible, own_facts)
    document.rows_read, document.held_back = len(rows), stored.held_back + without_rate
    document.unmapped = len(stored.unnamed)
    if not is_known:
        document.band_skipped = stored.band_skipped
    document.read_at, document.last_error = run.observed_at, ""
    document.save()
    return (
        DocumentReport(
            key=document.key,
            rows_read=len(rows),
            new=stored.new,
            changed=stored.changed,
            gone=stored.gone,
            held_back=document.held_back,
            without_rate=without_rate,
            unmapped=len(stored.unnamed),
            band_skipped=document.band_skipped,
        ),
        stored,
    )


def _refuse_sudden_loss(document: SourceDocument, rows: int, now: datetime) -> None:
    """Raise BodyRejected for a live body that lost more than half of its rows within a day of the last good one.

    A file cut between two lines looks whole. If the loss is real it is believed a day later.
    """
    lately = document.read_at is not None and now - document.read_at < SUDDEN_LOSS
    if lately and rows * 2 < document.rows_read:
        raise BodyRejected(
            f"only {rows} of {document.rows_read} rows are left: it looks cut, and is not believed today"
        )


def _keep_body(run: _Run, document: SourceDocument, body: Body) -> bool:
    """Keep the body as read when its content is new; return whether it was known before."""
    digest = hashlib.sha256(body.content).hexdigest()
    is_known = digest == document.sha256
    first_seen_at = document.content_first_seen_at if is_known else None
    document.sha256 = digest
    document.content_first_seen_at = min(first_seen_at or run.observed_at, run.observed_at)
    document.url, document.etag, document.last_modified = body.url, body.etag[:200], body.last_modified[:60]
    if not is_known:
        RawBody.objects.create(
            document=document,
            content_zlib=zlib.compress(body.content),
            sha256=digest,
            fetched_at=run.observed_at,
            adapter_version=run.adapter.adapter_version,
            replayed=body.replayed,
        )
        newest = RawBody.objects.filter(document=document).order_by("-pk").values("pk")[:KEPT_BODIES]
        RawBody.objects.filter(document=document).exclude(pk__in=[row["pk"] for row in newest]).delete()
    return is_known


def _keep_companion(run: _Run, key: str, reading: bodies.Reading) -> None:
    if isinstance(reading, Body):
        with transaction.atomic():
            document, _created = SourceDocument.objects.get_or_create(source=run.source, key=key)
            _keep_body(run, document, reading)
            document.read_at, document.last_error = run.observed_at, ""
            document.save()


def _rates(currencies: Collection[str], day: date) -> dict[str, UsdRate]:
    """Return the rates of other currencies than USD, without those that no rate is known for."""
    found = {}
    for currency in set(currencies) - {"USD"}:
        with suppress(NoRate):
            found[currency] = usd_rate(currency, day=day)
    return found


@transaction.atomic
def _renew(run: _Run, key: str, reading: NotModified) -> DocumentReport:
    lock_offers_for_own_rows()
    document = SourceDocument.objects.get(source=run.source, key=key)
    on_sale = Offer.objects.filter(document=document, gone_at__isnull=True)
    on_sale.update(observed_at=run.observed_at)
    currencies = set(on_sale.exclude(currency="USD").values_list("currency", flat=True))
    convert_anew(document, _rates(currencies, run.now.date()))
    document.read_at, document.last_error = run.observed_at, ""
    document.save(update_fields=["read_at", "last_error"])
    return DocumentReport(
        key=key,
        rows_read=document.rows_read,
        held_back=document.held_back,
        unmapped=document.unmapped,
        band_skipped=document.band_skipped,
        is_unchanged=True,
    )


def _refuse(run: _Run, key: str, reason: str) -> DocumentReport:
    """Note why; what was stored stays. The next run asks for the whole body, whatever did not change meanwhile."""
    facts = {"last_error": reason, "etag": "", "last_modified": ""}
    SourceDocument.objects.update_or_create(source=run.source, key=key, defaults=facts)
    return DocumentReport(key=key, error=reason)


def _say_how_it_stands(run: _Run, reports: Sequence[DocumentReport], *, is_replay: bool) -> None:
    """Write the source's state: of all its documents, also of those this run did not ask for."""
    errors = dict(SourceDocument.objects.filter(source=run.source).values_list("key", "last_error"))
    keys = [document.key for document in run.adapter.documents() if not document.companion_of]
    standing = {key: errors[key] for key in keys if key in errors}
    failing = {key: error for key, error in standing.items() if error}
    has_success = any(not report.error for report in reports)
    source = run.source
    source.adapter_version = bodies.reading_version(run.adapter)
    source.last_attempt_at = run.now
    source.last_error = "\n".join(reasons(failing))
    source.state = SourceRow.State.FRESH
    if failing:
        source.state = SourceRow.State.FAILING if len(failing) == len(standing) else SourceRow.State.PARTLY
    if has_success:
        source.last_success_at = run.now
        source.replayed = is_replay
    source.save(
        update_fields=["adapter_version", "last_attempt_at", "last_error", "state", "last_success_at", "replayed"]
    )
    failed = sum(bool(report.error) for report in reports)
    outcome = "whole" if not failed else "failed" if failed == len(reports) else "partly"
    count_refresh(source=source, state=outcome, now=run.now)


def _source_row(adapter: Source) -> SourceRow:
    facts = {"title": adapter.title, "homepage": adapter.homepage, "is_collector": adapter.is_collector}
    interval = adapter.interval_minutes if isinstance(adapter, PacedSource) else settings.SOURCE_INTERVAL_MINUTES
    new = {**facts, "interval_minutes": interval}
    return SourceRow.objects.update_or_create(name=adapter.name, defaults=facts, create_defaults=new)[0]
