"""What tests of the SkyPilot adapter share: bodies of a few lines, and the card a row means."""

from datetime import UTC, datetime

from catalog.names import Hints, resolve
from catalog.sources.base import Body, OfferRow
from catalog.sources.skypilot import SkyPilot

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
DOCUMENTS = {document.key: document for document in SkyPilot().documents()}


def body_of(cloud: str, content: str | bytes, **facts: object) -> Body:
    encoded = content.encode() if isinstance(content, str) else content
    return Body(document=DOCUMENTS[cloud], content=encoded, fetched_at=NOW, **facts)  # type: ignore[arg-type]


def offers(cloud: str, *lines: str, header: str = HEADER, hosts: str = "") -> list[OfferRow]:
    companions = {"gcp-hosts": body_of("gcp-hosts", hosts)} if hosts else {}
    return list(SkyPilot().parse(body_of(cloud, "\n".join([header, *lines, ""])), companions))


def info(name: str, mib: int, count: int = 1) -> str:
    return f"\"{{'Gpus': [{{'Name': '{name}', 'Count': {count}, 'MemoryInfo': {{'SizeInMiB': {mib}}}}}]}}\""


def card_of(row: OfferRow) -> str | None:
    hints = Hints(
        memory_gb=row.gpu_memory_gb, form_factor=row.form_factor, cloud=row.cloud, instance_type=row.instance_type
    )
    return resolve(row.gpu_name, hints=hints).slug
