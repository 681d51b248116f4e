"""Every price source there is, in the order they are refreshed. A new source is a file here and a line below."""

from catalog.sources.base import Source
from catalog.sources.reference import ReferenceSnapshot
from catalog.sources.skypilot import SkyPilot

ALL_SOURCES: tuple[Source, ...] = (ReferenceSnapshot(), SkyPilot())


def source_named(name: str) -> Source:
    """Return the source called `name`. Raises KeyError, naming the known ones."""
    for source in ALL_SOURCES:
        if source.name == name:
            return source
    raise KeyError(f"no source is called {name!r}; known: {', '.join(source.name for source in ALL_SOURCES)}")
