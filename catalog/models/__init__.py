"""The catalogue's rows: GPUs, clouds, price sources, offers, their history, alerts, and the best ask the exchange publishes."""

from catalog.models.alerts import AlertMessage, PriceAlert
from catalog.models.clouds import Cloud, CloudFact
from catalog.models.gpus import Gpu
from catalog.models.history import PriceChange, PriceSnapshot
from catalog.models.offers import BestAsk, Offer, OfferQuerySet
from catalog.models.sources import TITLES_IN_WORDS, RawBody, Source, SourceDay, SourceDocument, UnmappedName

__all__ = [
    "TITLES_IN_WORDS",
    "AlertMessage",
    "BestAsk",
    "Cloud",
    "CloudFact",
    "Gpu",
    "Offer",
    "OfferQuerySet",
    "PriceAlert",
    "PriceChange",
    "PriceSnapshot",
    "RawBody",
    "Source",
    "SourceDay",
    "SourceDocument",
    "UnmappedName",
]
