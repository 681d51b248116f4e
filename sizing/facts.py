"""The data files of this app, read once: presets, measured and tracked rows, throughput facts."""

import csv
import functools
from pathlib import Path

from sizing.engine.presets import Preset, read_presets

DATA = Path(__file__).resolve().parent / "data"
MEASURED, TRACKED, THROUGHPUT = DATA / "measured.csv", DATA / "tracked.csv", DATA / "throughput.csv"


@functools.cache
def presets() -> dict[str, Preset]:
    """Return the known models by name."""
    return read_presets((DATA / "presets.json").read_text(encoding="utf-8"))


@functools.cache
def presets_by_hf_id() -> dict[str, Preset]:
    """Return the known models by their Hugging Face id in lower case."""
    return {preset.hf_id.lower(): preset for preset in presets().values()}


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return a data file's rows."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))
