"""What tests of a refresh share: made-up other sides, small bodies, and short questions about the stored offers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from catalog.models import Gpu, Offer
from catalog.refresh import RefreshReport, refresh_source
from catalog.sources.base import Body, Document, FetchFailed
from catalog.sources.fetching import Known, NotModified

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
AWS = [
    "p5.48xlarge,H100,8.0,192,2048,,55.04,20.0,us-east-1,use1-az1",
    "p5.48xlarge,H100,8.0,192,2048,,55.04,22.0,us-east-1,use1-az2",
    "g6e.xlarge,L40S,1.0,4,32,,1.861,,us-east-1,use1-az1",
    "g6e.xlarge,L40S,1.0,4,32,,1.95,,us-west-2,usw2-az1",
]
LAMBDA = ["gpu_1x_b200_sxm6,B200,1.0,26,360,,6.99,,us-east-1,", "gpu_1x_a10,A10,1.0,30,200,,1.29,,us-east-1,"]
UNKNOWN = "x9.large,Mystery 9000,1.0,4,32,,1.50,,us-east-1,use1-az1"
Answer = bytes | NotModified | Exception


def csv(*lines: str) -> bytes:
    return "\n".join([HEADER, *lines, ""]).encode()


class OtherSide:
    """Answers by document; what it does not know cannot be reached."""

    def __init__(self, **answers: Answer) -> None:
        self.answers: dict[str, Answer] = dict(answers)
        self.known: dict[str, Known] = {}

    def __call__(self, document: Document, known: Known, now: datetime) -> Body | NotModified:
        self.known[document.key] = known
        answer = self.answers.get(document.key, FetchFailed("nobody answers"))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, NotModified):
            return answer
        url = document.urls[0]
        return Body(document=document, content=answer, fetched_at=now, url=url, etag='"1"', priced_on=now.date())


def skypilot(now: datetime = NOW, /, **answers: Answer) -> RefreshReport:
    return refresh_source(source_name="skypilot", now=now, fetch=OtherSide(**answers))


def on_sale() -> dict[tuple[str, str, str, str], Decimal]:
    offers = Offer.objects.on_sale()
    return {(o.instance_type, o.market, o.region, o.zone): o.price_usd_per_gpu_hour for o in offers}


def everything() -> list[tuple[object, ...]]:
    fields = [field.attname for field in Offer._meta.concrete_fields]
    return list(Offer.objects.order_by("pk").values_list(*fields))


def counts(report: RefreshReport, key: str = "aws") -> tuple[int, int, int]:
    [document] = [document for document in report.documents if document.key == key]
    return document.new, document.changed, document.gone


def known_gpu(slug: str) -> Gpu:
    return Gpu.objects.get(slug=slug)
