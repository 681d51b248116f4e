"""`/sitemap.xml`: every page for everybody, in every language. `lastmod` stands only where the content itself has a date."""

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from django.contrib.sitemaps import Sitemap
from django.db.models import Max
from django.urls import reverse

from catalog.models import Cloud, Gpu, PriceSnapshot
from catalog.pairs import PAIRS
from marketplace.models import Listing
from sizing.guides.library import SLUGS, guide_text


class _Pages(Sitemap[Any]):
    """Pages that exist once per language; each names its sisters."""

    i18n = True
    alternates = True
    x_default = True


class Overviews(_Pages):
    """Pages that exist once."""

    def items(self) -> Iterable[str]:
        """Return the names of their addresses."""
        return (
            "catalog:board",
            "catalog:gpus",
            "catalog:clouds",
            "catalog:compare",
            "catalog:prices",
            "marketplace:market",
            "marketplace:selling",
            "sizing:llm-training",
            "sizing:fine-tuning",
            "sizing:llm-inference",
            "sizing:image-video",
            "sizing:rendering",
            "sizing:science",
            "calculator:calculator",
            "catalog:sources",
            "catalog:method",
            "status",
            "users:terms",
            "users:privacy",
            "users:refunds",
            "users:imprint",
        )

    def location(self, item: str) -> str:
        """Return the address in the language at hand."""
        return reverse(item)


class Gpus(_Pages):
    """GPU pages. Their prices are read many times a day and mostly stay: no date says when the page changed."""

    def items(self) -> Iterable[str]:
        """Return the slugs."""
        return Gpu.objects.order_by("position").values_list("slug", flat=True)

    def location(self, item: str) -> str:
        """Return the address in the language at hand."""
        return reverse("catalog:gpu", args=[item])


class Pairs(_Pages):
    """Pages of two GPUs; like theirs, they carry no date."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return the slugs of each pair that the catalogue holds."""
        held = set(Gpu.objects.values_list("slug", flat=True))
        return [pair.slugs for pair in PAIRS if held.issuperset(pair.slugs)]

    def location(self, item: tuple[str, str]) -> str:
        """Return the address in the language at hand."""
        return reverse("comparison:pair", args=item)


class Guides(_Pages):
    """Guides; they changed when their text did."""

    def items(self) -> Iterable[str]:
        """Return the slugs."""
        return SLUGS

    def location(self, item: str) -> str:
        """Return the address in the language at hand."""
        return reverse("guides:guide", args=[item])

    def lastmod(self, item: str) -> date:
        """Return the day that the guide itself names, in English like the rest."""
        document = guide_text(item, "en")
        assert document
        return date.fromisoformat(document.head["updated"])


class Books(_Pages):
    """Order books of what is for rent here."""

    def items(self) -> Iterable[str]:
        """Return the slugs of the GPUs."""
        return (
            Gpu.objects.filter(listings__state=Listing.State.ACTIVE)
            .order_by("position")
            .distinct()
            .values_list("slug", flat=True)
        )

    def location(self, item: str) -> str:
        """Return the address in the language at hand."""
        return reverse("marketplace:book", args=[item])


class PriceHistories(_Pages):
    """Price histories with something in them; they changed with their last snapshot."""

    def items(self) -> Iterable[tuple[str, datetime]]:
        """Return slugs, each with the hour of its last snapshot."""
        recorded = PriceSnapshot.objects.values_list("gpu__slug").annotate(last=Max("at"))
        return [(slug, last) for slug, last in recorded.order_by("gpu__slug") if last is not None]

    def location(self, item: tuple[str, datetime]) -> str:
        """Return the address in the language at hand."""
        return reverse("catalog:price-history", args=[item[0]])

    def lastmod(self, item: tuple[str, datetime]) -> datetime:
        """Return the hour of the last snapshot."""
        return item[1]


class Clouds(_Pages):
    """Cloud pages; their facts carry the day they were last checked."""

    def items(self) -> Iterable[tuple[str, date | None]]:
        """Return slugs, each with the day its newest fact was checked, None without facts."""
        return list(Cloud.objects.values_list("slug").annotate(checked_on=Max("facts__checked_on")).order_by("slug"))

    def location(self, item: tuple[str, date | None]) -> str:
        """Return the address in the language at hand."""
        return reverse("catalog:cloud", args=[item[0]])

    def lastmod(self, item: tuple[str, date | None]) -> date | None:
        """Return the day its newest fact was checked."""
        return item[1]


class WithoutLanguage(Sitemap[Any]):
    """Pages that exist in one language only."""

    def items(self) -> Iterable[str]:
        """Return the names of their addresses."""
        return ("api-docs",)

    def location(self, item: str) -> str:
        """Return the address."""
        return reverse(item)


SITEMAPS: dict[str, type[Sitemap[Any]]] = {
    "overviews": Overviews,
    "gpus": Gpus,
    "pairs": Pairs,
    "guides": Guides,
    "books": Books,
    "price-histories": PriceHistories,
    "clouds": Clouds,
    "without-language": WithoutLanguage,
}
