"""Models by name: their config fields, kept as facts with their source in `sizing/data/presets.json`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sizing.engine.architecture import Architecture
from sizing.engine.config_reader import read_config


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One model: its name here, its Hugging Face id, the parameters its makers state (billions), its config."""

    name: str
    hf_id: str
    published_b_params: float
    source_url: str
    config: Mapping[str, Any]
    architecture: Architecture


def read_presets(text: str) -> dict[str, Preset]:
    """Return the presets of a JSON list by name. Raises ConfigError on a wrong config.

    >>> read_presets("[]")
    {}
    """
    return {row["name"]: Preset(**row, architecture=read_config(row["config"])) for row in json.loads(text)}
