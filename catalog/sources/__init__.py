"""Every price source there is, in the order they are refreshed. A new source is a file here and a line below."""

from catalog.sources.akash import Akash
from catalog.sources.azure import Azure
from catalog.sources.base import Source
from catalog.sources.cudo import Cudo
from catalog.sources.digitalocean import DigitalOcean
from catalog.sources.lambda_cloud import Lambda
from catalog.sources.oci import Oci
from catalog.sources.ovh import Ovh
from catalog.sources.primeintellect import PrimeIntellect
from catalog.sources.reference import ReferenceSnapshot
from catalog.sources.runpod import RunPod
from catalog.sources.scaleway import Scaleway
from catalog.sources.shadeform import Shadeform
from catalog.sources.skypilot import SkyPilot
from catalog.sources.tensordock import TensorDock
from catalog.sources.vast import Vast
from catalog.sources.verda import Verda
from catalog.sources.vultr import Vultr

ALL_SOURCES: tuple[Source, ...] = (
    ReferenceSnapshot(),
    SkyPilot(),
    Shadeform(),
    PrimeIntellect(),
    Akash(),
    Azure(),
    Cudo(),
    DigitalOcean(),
    Lambda(),
    Oci(),
    Ovh(),
    RunPod(),
    Scaleway(),
    TensorDock(),
    Vast(),
    Verda(),
    Vultr(),
)


def source_named(name: str) -> Source:
    """Return the source called `name`. Raises KeyError, naming the known ones."""
    for source in ALL_SOURCES:
        if source.name == name:
            return source
    raise KeyError(f"no source is called {name!r}; known: {', '.join(source.name for source in ALL_SOURCES)}")
