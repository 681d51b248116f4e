"""`/feeds/prices/` and `/feeds/<slug>/`: price changes of one per cent and more, as Atom."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import NAMESPACE_URL, uuid5

from django.contrib.syndication.views import Feed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from catalog.models import Gpu, PriceSnapshot
from catalog.price_changes import LEAST_PERCENT, NotedChange, newest_changes
from catalog.views.kept import kept_page
from common import formats


@dataclass(frozen=True, kw_only=True)
class FeedOf:
    """What a feed is about: one GPU, or all of them (None)."""

    gpu: Gpu | None


class PriceChanges(Feed[NotedChange, FeedOf]):
    """The newest changes, newest first. Ids follow from GPU, market and hour alone."""

    feed_type = Atom1Feed
    author_name = "GPU Bourse"

    def get_object(self, request: HttpRequest, *args: object, **kwargs: str) -> FeedOf:
        """Find the GPU of the address."""
        slug = kwargs.get("slug")
        return FeedOf(gpu=get_object_or_404(Gpu, slug=slug) if slug else None)

    def title(self, obj: FeedOf) -> str:
        """Return the feed's name."""
        if obj.gpu is None:
            return _("GPU prices: changes · GPU Bourse")
        return _("%(name)s: price changes · GPU Bourse") % {"name": obj.gpu.label}

    def subtitle(self, obj: FeedOf) -> str:
        """Return what is told in it."""
        return _("Changes of %(percent)s%% or more of the lowest live price per GPU-hour, as recorded each hour.") % {
            "percent": LEAST_PERCENT
        }

    def link(self, obj: FeedOf) -> str:
        """Return the page that the feed belongs to."""
        return reverse("catalog:prices") if obj.gpu is None else reverse("catalog:price-history", args=[obj.gpu.slug])

    def items(self, obj: FeedOf) -> Sequence[NotedChange]:
        """Return the entries."""
        return newest_changes(gpu=obj.gpu)

    def item_title(self, item: NotedChange) -> str:
        """Return old and new price with the change in per cent."""
        row, language = item.row, _language()
        told = {
            "name": row.gpu.label,
            "market": PriceSnapshot.Market(row.market).label,
            "before": formats.price(row.price_before, language=language),
            "after": formats.price(row.price, language=language),
            "size": formats.tenths(item.change.size, language=language),
        }
        if row.price < row.price_before:
            return _("%(name)s, %(market)s: %(before)s to %(after)s USD per GPU-hour, %(size)s%% less") % told
        return _("%(name)s, %(market)s: %(before)s to %(after)s USD per GPU-hour, %(size)s%% more") % told

    def item_description(self, item: NotedChange) -> str:
        """Return how much stands behind the price."""
        if item.row.market == PriceSnapshot.Market.EXCHANGE:
            return _("The best offer on our exchange.")
        return ngettext(
            "The lowest live price; %(clouds)s cloud was counted.",
            "The lowest live price; %(clouds)s clouds were counted.",
            item.row.offers,
        ) % {"clouds": item.row.offers}

    def item_link(self, item: NotedChange) -> str:
        """Return the market's price history."""
        return f"{reverse('catalog:price-history', args=[item.row.gpu.slug])}?market={item.row.market}"

    def item_guid(self, item: NotedChange) -> str:
        """Return an id that stays, whatever the language, the host or the database."""
        row = item.row
        return f"urn:uuid:{uuid5(NAMESPACE_URL, f'price-change/{row.gpu.slug}/{row.market}/{row.at:%Y-%m-%dT%HZ}')}"

    def item_pubdate(self, item: NotedChange) -> datetime:
        """Return the hour."""
        return item.row.at

    item_updateddate = item_pubdate


_feed = PriceChanges()


@require_safe
@kept_page
def show_price_changes(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Return the feed of one GPU, or of all."""
    return _feed(request, slug=slug)


def _language() -> str:
    return get_language() or "en"
