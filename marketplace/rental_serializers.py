"""How rentals are told: what API.md promises of each, and for one of them everything its sums are made of."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from rest_framework import serializers

from common.money import from_micros
from marketplace.evidence import Held, HourState, Kind
from marketplace.models import Rental, RentalEvent, Settlement
from marketplace.queries.evidence import HourLine
from marketplace.queries.rentals import Proof, ends_at
from marketplace.serializers import CURRENCIES, PriceField
from marketplace.settlement.seconds import Span

_MONEY = "In the rental's currency."


class AccessSerializer(serializers.Serializer[Any]):
    """How to reach the machine."""

    ssh_host = serializers.CharField()
    ssh_port = serializers.IntegerField()
    ssh_user = serializers.CharField()
    host_key = serializers.CharField(help_text="Its fingerprint: compare it when you connect first.")


class RentalEventSerializer(serializers.Serializer[Any]):
    """Something that happened to a rental."""

    kind = serializers.CharField(help_text="A state it came to, or raised, raise_refused.")
    at = serializers.DateTimeField()
    detail = serializers.DictField()


class RentalHourSerializer(serializers.Serializer[Any]):
    """A settled UTC hour. One with `reversed_at` was given back whole."""

    starts_at = serializers.DateTimeField()
    billed_seconds = serializers.IntegerField()
    gap_seconds = serializers.IntegerField()
    net = serializers.CharField(help_text=_MONEY)
    tax = serializers.CharField()
    gross = serializers.CharField()
    settled_at = serializers.DateTimeField()
    reversed_at = serializers.DateTimeField(allow_null=True)


class RentalFieldsSerializer(serializers.Serializer[Any]):
    """A rental, but for its hours."""

    id = serializers.UUIDField()
    order = serializers.UUIDField()
    state = serializers.ChoiceField(choices=Rental.State.values)
    gpu = serializers.CharField()
    gpu_count = serializers.IntegerField()
    price_usd_per_gpu_hour = PriceField(allow_null=False)
    hours_ordered = serializers.IntegerField(allow_null=True, help_text="null: open-ended.")
    country = serializers.CharField()
    is_sample = serializers.BooleanField(help_text="The machine is one of the demo fleet.")
    filled_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True, help_text="Billing begins.")
    ends_at = serializers.DateTimeField(help_text="It ends then at the latest, or ended then.")
    paid_until = serializers.DateTimeField(allow_null=True, help_text="What the held hours reach to.")
    stop_requested_at = serializers.DateTimeField(allow_null=True, help_text="Billing ends.")
    ended_at = serializers.DateTimeField(allow_null=True)
    end_reason = serializers.CharField(allow_blank=True)
    access = AccessSerializer(allow_null=True)
    charged = serializers.CharField(help_text="Settled and not given back, tax included.")
    credited = serializers.CharField(help_text="Settled and given back.")
    held = serializers.CharField(help_text="Set aside now.")
    burn_per_hour = serializers.CharField(help_text="Tax included; 0 unless it runs.")
    currency = serializers.ChoiceField(choices=CURRENCIES)
    events = RentalEventSerializer(many=True)
    settled_hours = serializers.IntegerField()


class RentalSerializer(RentalFieldsSerializer):
    """A rental of a list, with its latest settled hours: 24 at most."""

    hours = RentalHourSerializer(many=True)


class HourPartSerializer(serializers.Serializer[Any]):
    """Billed seconds of one held hour, with the rates its money was held at."""

    seconds = serializers.IntegerField()
    fx_rate = serializers.CharField(help_text="Units of the rental's currency per USD.")
    held_tax_rate_percent = serializers.CharField()


class HourTaxSerializer(serializers.Serializer[Any]):
    """The tax decision at the start of an hour; without one the rates it was held at were taken."""

    treatment = serializers.CharField(allow_blank=True)
    country = serializers.CharField(allow_blank=True)
    rate_percent = serializers.CharField(allow_null=True)
    is_gross_kept = serializers.BooleanField(
        help_text="The rate rose above the one held at: the gross stays, and the tax is taken out of it."
    )


class StretchSerializer(serializers.Serializer[Any]):
    """A part of an hour in which nothing changed. Billed are `heard` and `unseen`."""

    kind = serializers.ChoiceField(choices=[kind.value for kind in Kind])
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    seconds = serializers.IntegerField()


class ProvenHourSerializer(serializers.Serializer[Any]):
    """A UTC hour with what its sum is made of.

    Net of price: gpu_count x price x the sum of seconds x fx_rate over its parts / 3600, rounded once, half to even, to
    six decimals. Tax: its share of that, rounded the same way.
    """

    state = serializers.ChoiceField(choices=[state.value for state in HourState])
    starts_at = serializers.DateTimeField()
    billed_seconds = serializers.IntegerField()
    gap_seconds = serializers.IntegerField()
    net = serializers.CharField(help_text=_MONEY)
    tax = serializers.CharField()
    gross = serializers.CharField()
    price_net = serializers.CharField(help_text="Net by price and seconds; net differs only where the gross is kept.")
    parts = HourPartSerializer(many=True)
    tax_decision = HourTaxSerializer()
    stretches = StretchSerializer(many=True)


class SettledHourSerializer(ProvenHourSerializer):
    """A settled UTC hour with its proof. One with `reversed_at` was given back whole."""

    settled_at = serializers.DateTimeField()
    reversed_at = serializers.DateTimeField(allow_null=True)
    is_recomputed_equal = serializers.BooleanField(help_text="The formula, applied anew, gives these amounts.")


class HeldHoursSerializer(serializers.Serializer[Any]):
    """Hours that money was set aside for."""

    first_hour = serializers.IntegerField(help_text="Counted from ready_at, from 0.")
    hours = serializers.IntegerField()
    fx_rate = serializers.CharField()
    fx_date = serializers.DateField(allow_null=True)
    tax_rate_percent = serializers.CharField()
    held = serializers.CharField(help_text=_MONEY)
    held_at = serializers.DateTimeField()


class SpanSerializer(serializers.Serializer[Any]):
    """A time."""

    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class RentalProofSerializer(RentalFieldsSerializer):
    """A rental with the evidence behind every sum."""

    as_of = serializers.DateTimeField()
    hours = SettledHourSerializer(many=True)
    open_hours = ProvenHourSerializer(many=True, help_text="Not settled yet, as they stand; never settled: unbilled.")
    cost_if_stopped_now = serializers.CharField(help_text="Charged, and what is not settled yet.")
    held_hours = HeldHoursSerializer(many=True)
    beats = SpanSerializer(many=True, help_text="Each beat within a minute of the one before.")
    gaps = SpanSerializer(many=True, help_text="Not billed.")
    platform_up = SpanSerializer(many=True, help_text="Outside them nothing is a gap.")


def rental_row(rental: Any) -> dict[str, Any]:
    """Return a rental of a list as RentalSerializer tells it."""
    lines: Iterable[Settlement] = reversed(rental.latest_lines)
    return {**_rental(rental), "hours": [_line(line) for line in lines]}


def proof_row(proof: Proof, *, now: datetime) -> dict[str, Any]:
    """Return a rental as RentalProofSerializer tells it."""
    return {
        **_rental(proof.standing.rental),
        "as_of": now,
        "hours": [_settled(hour, hour.line) for hour in proof.hours if hour.line is not None],
        "open_hours": [_proven(hour) for hour in proof.hours if hour.line is None],
        "cost_if_stopped_now": _money(proof.standing.cost_micros),
        "held_hours": [_held(row) for row in proof.witness.held],
        "beats": [_span(span) for span in proof.witness.beats],
        "gaps": [_span(span) for span in (proof.known.gaps if proof.known else ())],
        "platform_up": [_span(span) for span in proof.witness.ups],
    }


def _rental(rental: Any) -> dict[str, Any]:
    return {
        "id": rental.pk,
        "order": rental.order_id,
        "state": rental.state,
        "gpu": rental.gpu.slug,
        "gpu_count": rental.gpu_count,
        "price_usd_per_gpu_hour": f"{rental.price_usd_per_gpu_hour:.4f}",
        "hours_ordered": rental.hours,
        "country": rental.server.country,
        "is_sample": rental.server.is_sample,
        "filled_at": rental.filled_at,
        "ready_at": rental.ready_at,
        "ends_at": ends_at(rental),
        "paid_until": rental.paid_until,
        "stop_requested_at": rental.stop_requested_at,
        "ended_at": rental.ended_at,
        "end_reason": rental.end_reason,
        "access": rental.access if rental.state == Rental.State.RUNNING else None,
        "charged": _money(rental.charged),
        "credited": _money(rental.credited),
        "held": _money(rental.hold.remaining_micros),
        "burn_per_hour": _money(rental.hold.burn_micros_per_hour),
        "currency": rental.currency,
        "events": [_event(event) for event in rental.events.all()],
        "settled_hours": rental.settled_hours,
    }


def _event(event: RentalEvent) -> dict[str, Any]:
    return {"kind": event.kind, "at": event.at, "detail": event.detail}


def _line(line: Settlement) -> dict[str, Any]:
    return {
        "starts_at": line.hour,
        "billed_seconds": line.billed_seconds,
        "gap_seconds": line.gap_seconds,
        "net": _money(line.net_micros),
        "tax": _money(line.tax_micros),
        "gross": _money(line.gross_micros),
        "settled_at": line.settled_at,
        "reversed_at": line.reversed_at,
    }


def _settled(hour: HourLine, line: Settlement) -> dict[str, Any]:
    return {
        **_proven(hour),
        "settled_at": line.settled_at,
        "reversed_at": line.reversed_at,
        "is_recomputed_equal": hour.is_equal,
    }


def _proven(hour: HourLine) -> dict[str, Any]:
    tax = hour.tax
    return {
        "state": hour.state.value,
        "starts_at": hour.starts_at,
        "billed_seconds": hour.billed_seconds,
        "gap_seconds": hour.gap_seconds,
        "net": _money(hour.amounts.net_micros),
        "tax": _money(hour.amounts.tax_micros),
        "gross": _money(hour.amounts.gross_micros),
        "price_net": _money(hour.sum.price_net_micros),
        "parts": [
            {
                "seconds": part.seconds,
                "fx_rate": str(part.fx_rate),
                "held_tax_rate_percent": str(part.held_tax_rate_percent),
            }
            for part in hour.sum.parts
        ],
        "tax_decision": {
            "treatment": tax.treatment,
            "country": tax.country,
            "rate_percent": None if tax.rate_percent is None else str(tax.rate_percent),
            "is_gross_kept": hour.sum.is_gross_kept,
        },
        "stretches": [
            {
                "kind": stretch.kind.value,
                "starts_at": stretch.starts_at,
                "ends_at": stretch.ends_at,
                "seconds": stretch.seconds,
            }
            for stretch in hour.stretches
        ],
    }


def _held(row: Held) -> dict[str, Any]:
    return {
        "first_hour": row.first_hour,
        "hours": row.hours,
        "fx_rate": str(row.fx_rate),
        "fx_date": row.fx_on,
        "tax_rate_percent": str(row.tax_rate_percent),
        "held": _money(row.held_micros),
        "held_at": row.held_at,
    }


def _span(span: Span) -> dict[str, Any]:
    return {"starts_at": span.first, "ends_at": span.last}


def _money(micros: int) -> str:
    return str(from_micros(int(micros)))
