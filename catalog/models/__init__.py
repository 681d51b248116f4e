"""The catalogue's rows: GPUs, clouds, price sources, offers, their history, and the best ask the exchange publishes."""

from catalog.models.clouds import Cloud, CloudFact
from catalog.models.gpus import Gpu
from catalog.models.history import PriceSnapshot
from catalog.models.offers import BestAsk, Offer, OfferQuerySet
from catalog.models.sources import TITLES_IN_WORDS, RawBody, Source, SourceDay, SourceDocument, UnmappedName

__all__ = [
    "TITLES_IN_WORDS",
    "BestAsk",
    "Cloud",
    "CloudFact",
    "Gpu",
    "Offer",
    "OfferQuerySet",
    "PriceSnapshot",
    "RawBody",
    "Source",
    "SourceDay",
    "SourceDocument",
    "UnmappedName",
]
