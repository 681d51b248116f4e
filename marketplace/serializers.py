"""How the exchange is told: prices as strings in USD per GPU-hour, money in its currency, times in UTC."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from rest_framework import serializers

from common.money import from_micros
from marketplace.levels import Book, Level
from marketplace.models import Fill, Order
from marketplace.queries.market import Market
from marketplace.queries.orders import WhyOpen
from marketplace.quotes import Obstacle, Quoted
from marketplace.why import Why

CURRENCIES = ("EUR", "USD", "GBP")
_PRICE_HELP = "USD per GPU-hour, net of tax."


class PriceField(serializers.CharField):
    """A price as a string; null where there is none."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"read_only": True, "allow_null": True, "help_text": _PRICE_HELP, **kwargs})


class MoneySerializer(serializers.Serializer[Any]):
    """An amount with its currency."""

    amount = serializers.CharField()
    currency = serializers.ChoiceField(choices=CURRENCIES)


class MarketSerializer(serializers.Serializer[Any]):
    """One GPU's market."""

    gpu = serializers.CharField()
    best_bid_usd_per_gpu_hour = PriceField()
    best_ask_usd_per_gpu_hour = PriceField(help_text="For one device for one hour without filters.")
    devices_available = serializers.IntegerField()
    last_price_usd_per_gpu_hour = PriceField()
    change_24h = PriceField(help_text="In per cent of the last price a day ago.")
    volume_24h_gpu_hours = serializers.IntegerField()
    as_of = serializers.DateTimeField(allow_null=True)


class BidLevelSerializer(serializers.Serializer[Any]):
    """What is wanted at one limit."""

    price_usd_per_gpu_hour = PriceField(allow_null=False)
    gpu_count = serializers.IntegerField()
    orders = serializers.IntegerField()


class AskLevelSerializer(BidLevelSerializer):
    """What is for rent at one price."""

    min_gpus = serializers.IntegerField(help_text="The smallest slice anyone sells at this price.")


class BookSerializer(serializers.Serializer[Any]):
    """A book, aggregated by price, best first. A bid above an ask does not fit it: too many devices, hours or wishes."""

    gpu = serializers.CharField()
    as_of = serializers.DateTimeField(allow_null=True)
    bids = BidLevelSerializer(many=True)
    asks = AskLevelSerializer(many=True)


class TradeSerializer(serializers.Serializer[Any]):
    """A fill, without identities."""

    id = serializers.UUIDField()
    price_usd_per_gpu_hour = PriceField(allow_null=False)
    gpu_count = serializers.IntegerField()
    traded_at = serializers.DateTimeField()


class FxSerializer(serializers.Serializer[Any]):
    """The exchange rate an order is made with: units of the wallet's currency per USD."""

    rate = serializers.CharField()
    date = serializers.DateField()
    margin = serializers.CharField(help_text="A share: 0.005 is half a per cent.")


class WhySerializer(serializers.Serializer[Any]):
    """What stands in the way of a fill."""

    best_price_usd_per_gpu_hour = PriceField(help_text="Of the asks that would do but for the price.")
    gap_usd_per_gpu_hour = PriceField(help_text="How far that is above the limit.")
    removed_devices = serializers.DictField(
        child=serializers.IntegerField(), help_text="Free devices each wish removes by itself."
    )
    devices_for_rent = serializers.IntegerField()
    servers_fitting = serializers.IntegerField(help_text="Servers that would do but for the price.")


class WhyOpenSerializer(WhySerializer):
    """Why an order rests, and what traded at its limit or below lately."""

    fills_7d = serializers.IntegerField()
    gpus_7d = serializers.IntegerField()


class WhyNotSerializer(serializers.Serializer[Any]):
    """Why an order would not fill whole now."""

    reason = serializers.ChoiceField(
        choices=["nothing_fits", "not_enough_money", "organisation_frozen", "receivable_open", "books_stopped"]
    )
    book = WhySerializer(allow_null=True)
    needed = serializers.CharField(allow_null=True)
    available = serializers.CharField(allow_null=True)


class QuotedFillSerializer(serializers.Serializer[Any]):
    """One server of a quote."""

    country = serializers.CharField()
    gpu_count = serializers.IntegerField()
    price_usd_per_gpu_hour = PriceField(allow_null=False)
    until = serializers.DateTimeField()


class QuoteSerializer(serializers.Serializer[Any]):
    """A price promised as a maximum until `expires_at`. It reserves nothing."""

    id = serializers.UUIDField(allow_null=True)
    price_usd_per_gpu_hour = PriceField(help_text="Of the worst fill: the order's limit.")
    fills = QuotedFillSerializer(many=True)
    net_per_hour = serializers.CharField()
    tax_per_hour = serializers.CharField()
    gross_per_hour = serializers.CharField()
    tax_rate_percent = serializers.CharField()
    hold = serializers.CharField(help_text="Set aside when it fills; a lot never costs more.")
    currency = serializers.ChoiceField(choices=CURRENCIES)
    fx = FxSerializer(allow_null=True)
    runs_until = serializers.DateTimeField(allow_null=True)
    why_not = WhyNotSerializer(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    order = serializers.DictField(allow_null=True, help_text="The body to post to `orders/`.")


class OrderFillSerializer(serializers.Serializer[Any]):
    """One fill of an order."""

    rental = serializers.UUIDField()
    gpu_count = serializers.IntegerField()
    price_usd_per_gpu_hour = PriceField(allow_null=False)


class FiltersSerializer(serializers.Serializer[Any]):
    """What the order asks of a server."""

    countries = serializers.ListField(child=serializers.CharField())
    interconnect = serializers.CharField(allow_blank=True)
    min_ram_gb = serializers.IntegerField()
    min_vcpus = serializers.IntegerField()
    min_disk_gb = serializers.IntegerField()
    verified = serializers.BooleanField(help_text="Always true: only verified servers are for rent.")


class OrderSerializer(serializers.Serializer[Any]):
    """An order."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=Order.State.values)
    close_reason = serializers.CharField(allow_blank=True)
    gpu = serializers.CharField()
    gpu_count = serializers.IntegerField(help_text="Devices of one server.")
    server_count = serializers.IntegerField()
    hours = serializers.IntegerField(allow_null=True)
    limit_price_usd_per_gpu_hour = PriceField(allow_null=False)
    time_in_force = serializers.ChoiceField(choices=Order.TimeInForce.values)
    filters = FiltersSerializer()
    filled_servers = serializers.IntegerField()
    fills = OrderFillSerializer(many=True)
    hold = MoneySerializer(help_text="What the open part of the order sets aside now; its rentals hold their own.")
    wallet = serializers.ChoiceField(choices=CURRENCIES)
    fx = FxSerializer(allow_null=True)
    tax_rate_percent = serializers.CharField()
    placed_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)
    why_open = WhyOpenSerializer(allow_null=True)


def market_row(market: Market) -> dict[str, Any]:
    """Return a market as MarketSerializer tells it."""
    return {
        "gpu": market.gpu.slug,
        "best_bid_usd_per_gpu_hour": _price(market.best_bid),
        "best_ask_usd_per_gpu_hour": _price(market.best_ask),
        "devices_available": market.devices_available,
        "last_price_usd_per_gpu_hour": _price(market.last_price),
        "change_24h": None if market.change_24h is None else f"{market.change_24h:.2f}",
        "volume_24h_gpu_hours": market.volume_24h_gpu_hours,
        "as_of": market.as_of,
    }


def book_row(slug: str, book: Book, *, as_of: datetime | None) -> dict[str, Any]:
    """Return a book as BookSerializer tells it."""
    return {
        "gpu": slug,
        "as_of": as_of,
        "bids": [_level(level) for level in book.bids],
        "asks": [{**_level(level), "min_gpus": level.min_gpus} for level in book.asks],
    }


def trade_row(fill: Fill) -> dict[str, Any]:
    """Return a fill as TradeSerializer tells it."""
    return {
        "id": fill.pk,
        "price_usd_per_gpu_hour": _price(fill.price_usd_per_gpu_hour),
        "gpu_count": fill.gpu_count,
        "traded_at": fill.filled_at,
    }


def quote_row(quoted: Quoted, *, slug: str) -> dict[str, Any]:
    """Return a quote as QuoteSerializer tells it."""
    quote = quoted.quote
    return {
        "id": quote and quote.pk,
        "price_usd_per_gpu_hour": _price(quoted.price),
        "fills": [
            {
                "country": fill.country,
                "gpu_count": fill.gpu_count,
                "price_usd_per_gpu_hour": _price(fill.price),
                "until": fill.until,
            }
            for fill in quoted.fills
        ],
        "net_per_hour": _money(quoted.net_per_hour_micros),
        "tax_per_hour": _money(quoted.tax_per_hour_micros),
        "gross_per_hour": _money(quoted.gross_per_hour_micros),
        "tax_rate_percent": str(quoted.tax_rate_percent),
        "hold": _money(quoted.hold_micros),
        "currency": quoted.currency,
        "fx": _fx(quoted.rate.rate, quoted.rate.on, quoted.rate.margin),
        "runs_until": quoted.runs_until,
        "why_not": _why_not(quoted.obstacle),
        "expires_at": quote and quote.expires_at,
        "order": quote
        and {
            **quote.body,
            "gpu": slug,
            "limit_price_usd_per_gpu_hour": _price(quoted.price),
            "time_in_force": "ioc",
            "quote": str(quote.pk),
        },
    }


def order_row(order: Order, *, why: WhyOpen | None) -> dict[str, Any]:
    """Return an order as OrderSerializer tells it."""
    rests = order.state in Order.RESTING
    return {
        "id": order.pk,
        "state": order.state,
        "close_reason": order.close_reason,
        "gpu": order.gpu.slug,
        "gpu_count": order.gpu_count,
        "server_count": order.server_count,
        "hours": order.hours,
        "limit_price_usd_per_gpu_hour": _price(order.limit_price_usd_per_gpu_hour),
        "time_in_force": order.time_in_force,
        "filters": {
            "countries": order.countries,
            "interconnect": order.interconnect,
            "min_ram_gb": order.min_ram_gb,
            "min_vcpus": order.min_vcpus,
            "min_disk_gb": order.min_disk_gb,
            "verified": order.only_verified,
        },
        "filled_servers": order.filled_servers,
        "fills": [
            {
                "rental": fill.rental.pk,
                "gpu_count": fill.gpu_count,
                "price_usd_per_gpu_hour": _price(fill.price_usd_per_gpu_hour),
            }
            for fill in order.fills.all()
        ],
        "hold": {
            "amount": _money(order.hold.remaining_micros if rests and order.hold else 0),
            "currency": order.currency,
        },
        "wallet": order.currency,
        "fx": _fx(order.fx_rate, order.fx_on, order.fx_margin),
        "tax_rate_percent": str(order.tax_rate_percent),
        "placed_at": order.placed_at,
        "expires_at": order.expires_at,
        "closed_at": order.closed_at,
        "why_open": None if why is None else {**_why(why.why), "fills_7d": why.fills_7d, "gpus_7d": why.gpus_7d},
    }


def _level(level: Level) -> dict[str, Any]:
    return {"price_usd_per_gpu_hour": _price(level.price), "gpu_count": level.gpu_count, "orders": level.orders}


def _why_not(obstacle: Obstacle | None) -> Mapping[str, Any] | None:
    if obstacle is None:
        return None
    is_about_money = obstacle.reason == "not_enough_money"
    return {
        "reason": obstacle.reason,
        "book": None if obstacle.why is None else _why(obstacle.why),
        "needed": _money(obstacle.needed_micros) if is_about_money else None,
        "available": _money(obstacle.available_micros) if is_about_money else None,
    }


def _why(why: Why) -> dict[str, Any]:
    return {
        "best_price_usd_per_gpu_hour": _price(why.best_price),
        "gap_usd_per_gpu_hour": _price(why.gap),
        "removed_devices": dict(why.removed),
        "devices_for_rent": why.devices_for_rent,
        "servers_fitting": why.servers_fitting,
    }


def _fx(rate: Decimal, on: Any, margin: Decimal) -> dict[str, Any] | None:
    return None if on is None else {"rate": str(rate), "date": on, "margin": str(margin)}


def _price(price: Decimal | None) -> str | None:
    return None if price is None else f"{price:.4f}"


def _money(micros: int) -> str:
    return str(from_micros(micros))
