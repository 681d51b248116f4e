"""A config.json that somebody pasted or uploaded: read strictly, then cut down to what an address can carry.

The file is kept nowhere. Of its fields only those stay that the engine looks at; the address holds them as short JSON,
so that the page can be shared and the estimate is the one of the whole file.

>>> from_address(for_address(read_config_text(b'{"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,'
...                                           b'"vocab_size": 50257, "note": "whatever"}')))
{'model_type': 'gpt2', 'n_embd': 768, 'n_head': 12, 'n_layer': 12, 'vocab_size': 50257}
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sizing.engine.config_reader import MOST_LAYERS, read_config

MOST_BYTES = 256 * 1024
MOST_IN_ADDRESS = 2_500  # characters; a server in front may refuse request lines above 4,094 bytes
SLIDING, FULL = "sliding_attention", "full_attention"
_LAYER_TYPES, _PART, _QUANTISED = "layer_types", "text_config", "quantization_config"
_OF_QUANTISATION = ("quant_method", "bits", "load_in_8bit")


class ConfigTextError(ValueError):
    """The text is not a config that can be used. `code`: too_large, not_json, not_an_object or too_long."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def read_config_text(text: bytes) -> dict[str, Any]:
    """Return the content of a config.json. Raises ConfigTextError."""
    if len(text) > MOST_BYTES:
        raise ConfigTextError("too_large")
    try:
        config = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError) as problem:  # not UTF-8, not JSON, NaN, a number of thousands of digits
        raise ConfigTextError("not_json") from problem
    if not isinstance(config, dict):
        raise ConfigTextError("not_an_object")
    return config


def _refuse(word: str) -> Any:
    raise ValueError(word)


def for_address(config: Mapping[str, Any]) -> str:
    """Return what the engine reads of a config, as short JSON. Raises ConfigError, or ConfigTextError where it is too long."""
    part = config.get(_PART)
    if isinstance(part, Mapping):
        inner = {"model_type": config.get("model_type"), **part}
        kept = {"model_type": config.get("model_type"), _PART: _seen_fields(inner)}
    else:
        kept = _seen_fields(config)
    quantised = config.get(_QUANTISED)
    if isinstance(quantised, Mapping):
        kept[_QUANTISED] = {name: quantised[name] for name in _OF_QUANTISATION if name in quantised}
    text = json.dumps({name: value for name, value in kept.items() if value is not None}, separators=(",", ":"))
    if len(text) > MOST_IN_ADDRESS:
        raise ConfigTextError("too_long")
    return text


def _seen_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the engine asks for, layers of one kind counted instead of listed."""
    seen = _Seen(config)
    read_config(seen)
    found = {name: config[name] for name in sorted(seen.names) if config.get(name) is not None}
    kinds = found.get(_LAYER_TYPES)
    if isinstance(kinds, list):
        found[_LAYER_TYPES] = Counter(kind if kind == SLIDING else FULL for kind in kinds)
    return found


class _Seen(Mapping[str, Any]):
    """A config that notes which of its fields are looked at."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config, self.names = config, set[str]()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return self._config[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)


def from_address(text: str) -> dict[str, Any]:
    """Return the config that an address holds. Raises ConfigTextError."""
    config = read_config_text(text.encode("utf-8", "surrogatepass"))
    part = config.get(_PART)
    if isinstance(part, dict):
        config[_PART] = _with_layers_listed(part)
    return _with_layers_listed(config)


def _with_layers_listed(config: dict[str, Any]) -> dict[str, Any]:
    """Undo the counting of layers; a count that makes no sense is left for the engine to refuse."""
    counts = config.get(_LAYER_TYPES)
    if not isinstance(counts, dict) or not all(type(n) is int and 0 <= n <= MOST_LAYERS for n in counts.values()):
        return config
    return {**config, _LAYER_TYPES: [kind for kind, count in counts.items() for _ in range(count)]}
