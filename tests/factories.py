"""Rows for tests: keyword-only functions, each with a sensible whole row behind it."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count

from allauth.account.models import EmailAddress

from catalog.models import (
    BestAsk,
    Cloud,
    CloudFact,
    Gpu,
    Offer,
    PriceSnapshot,
    Source,
    SourceDocument,
    UnmappedName,
)
from catalog.models.clouds import terms_of
from users.models import Membership, Organisation, Role, User

NOW = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
_positions = count(1000)
_numbers = count(1)


def make_gpu(*, slug: str = "h100-sxm", **values) -> Gpu:
    """Return a GPU; unless told otherwise it has an H100's memory, bandwidth and BF16."""
    defaults = {
        "vendor": "NVIDIA",
        "name": f"NVIDIA {slug}",
        "label": slug.upper(),
        "position": next(_positions),
        "architecture": "Hopper",
        "form_factor": "SXM5",
        "memory_gb": Decimal(80),
        "memory_type": "HBM3",
        "memory_bandwidth_gb_s": Decimal(3350),
        "bf16_dense_tflops": Decimal(989),
        "software_stack": "CUDA",
        "source_url": "https://example.com/sheet",
    }
    return Gpu.objects.create(slug=slug, **{**defaults, **values})


def make_cloud(*, slug: str = "lambda", **values) -> Cloud:
    """Return a cloud, the same one for the same slug."""
    defaults = {"name": slug.title(), "website": f"https://{slug}.example.com/", **values}
    return Cloud.objects.get_or_create(slug=slug, defaults=defaults)[0]


def make_cloud_fact(*, cloud: str = "lambda", fact: str, value: str, **values) -> CloudFact:
    """Return a fact of a cloud; its number is read from the value where it is one."""
    number = Decimal(value) if value.replace(".", "", 1).isdecimal() else None
    defaults = {"source_url": "https://example.com/docs", "checked_on": date(2026, 11, 30), "number": number}
    row = CloudFact.objects.create(cloud=make_cloud(slug=cloud), fact=fact, value=value, **{**defaults, **values})
    terms = terms_of({known.fact: known for known in CloudFact.objects.filter(cloud=row.cloud)})
    Cloud.objects.filter(pk=row.cloud_id).update(**terms)
    return row


def make_source(*, name: str = "skypilot", **values) -> Source:
    """Return a source, the same one for the same name."""
    defaults = {"title": name.title(), "state": Source.State.FRESH, **values}
    return Source.objects.get_or_create(name=name, defaults=defaults)[0]


def make_document(*, source: Source | None = None, key: str = "all", **values) -> SourceDocument:
    """Return a document of a source, the same one for the same key."""
    return SourceDocument.objects.get_or_create(source=source or make_source(), key=key, defaults=values)[0]


def make_offer(
    *,
    gpu: Gpu,
    price: str | Decimal,
    cloud: str = "lambda",
    observed_at: datetime = NOW - timedelta(minutes=12),
    priced_on: date | None = None,
    source: Source | None = None,
    **values,
) -> Offer:
    """Return a live on-demand offer of one GPU at `price` USD per GPU-hour."""
    document = make_document(source=source)
    gpu_count = Decimal(values.pop("gpu_count", 1))
    defaults = {
        "gpu_name": gpu.label,
        "instance_type": f"machine-{next(_numbers)}",
        "price_usd_per_hour": Decimal(price) * gpu_count,
        "price_in_currency_per_hour": Decimal(price) * gpu_count,
        "market": Offer.MarketKind.ON_DEMAND,
        "region": "eu-1",
        "first_seen_at": observed_at,
    }
    return Offer.objects.create(
        gpu=gpu,
        cloud=make_cloud(slug=cloud),
        source=document.source,
        document=document,
        gpu_count=gpu_count,
        price_usd_per_gpu_hour=Decimal(price),
        observed_at=observed_at,
        priced_on=priced_on,
        **{**defaults, **values},
    )


def make_live_offer(*, gpu: Gpu, price: str | Decimal, hours_old: float = 0.2, **values) -> Offer:
    """Return an offer read so many hours before this very moment, for pages that ask the clock themselves."""
    return make_offer(gpu=gpu, price=price, observed_at=datetime.now(UTC) - timedelta(hours=hours_old), **values)


def make_list_offer(*, gpu: Gpu, price: str | Decimal, priced_on: date = date(2026, 5, 7), **values) -> Offer:
    """Return a dated list price."""
    return make_offer(gpu=gpu, price=price, priced_on=priced_on, is_list=True, **values)


def make_best_ask(*, gpu: Gpu, price: str | Decimal, devices: int = 8, observed_at: datetime = NOW) -> BestAsk:
    """Return the exchange's best ask for a GPU."""
    return BestAsk.objects.create(
        gpu=gpu, price_usd_per_gpu_hour=Decimal(price), devices_available=devices, observed_at=observed_at
    )


def make_unmapped(*, gpu_name: str = "A100", source: Source | None = None, **values) -> UnmappedName:
    """Return a name that stayed unclear."""
    defaults = {"cloud_slug": "vast", "rows": 3, "first_seen_at": NOW, "last_seen_at": NOW}
    return UnmappedName.objects.create(source=source or make_source(), gpu_name=gpu_name, **{**defaults, **values})


def make_snapshot(
    *, gpu: Gpu, at: datetime, price: str | Decimal | int = "2.88", market: str = "on_demand", **values
) -> PriceSnapshot:
    """Return a recorded hour; unless told otherwise one cloud was counted, at `price` USD per GPU-hour."""
    spread = dict.fromkeys(("min", "p25", "median", "p75"), Decimal(price))
    return PriceSnapshot.objects.create(gpu=gpu, at=at, market=market, **{**spread, "offers": 1, **values})


def make_organisation(*, name: str = "Orla Labs B.V.", **values) -> Organisation:
    """Return an organisation, the same one for the same name; unless told otherwise a Dutch business that rents."""
    defaults = {"kind": "renter", "type": "business", "country": "NL", **values}
    return Organisation.objects.get_or_create(name=name, defaults=defaults)[0]


def make_member(
    *,
    organisation: Organisation | None = None,
    role: Role = Role.OWNER,
    email: str = "",
    password: str = "long-enough-1",
) -> User:
    """Return a person with a verified address who acts for the organisation."""
    user = User.objects.create_user(email=email or f"person-{next(_numbers)}@example.com", password=password)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    Membership.objects.create(
        user=user, organisation=organisation or make_organisation(), role=role, joined_at=NOW - timedelta(days=90)
    )
    return user


def make_operator(*, email: str = "operator@example.com") -> User:
    """Return an operator with a verified address."""
    user = User.objects.create_superuser(email=email, password="long-enough-1")
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user
