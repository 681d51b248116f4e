"""How many estimates one core makes in a second; there is no outside limit to measure against but the clock."""

import time
from typing import Any

from sizing.engine.estimate import estimate
from sizing.engine.request import read_request
from sizing.facts import presets

SECONDS = 2.0
FLOOR_PER_S, AIM_PER_S = 200, 1_000
SAMPLES: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "task": "full", "gpu_counts": [8], "sharding": "fsdp"},
    {"model": "qwen2.5-7b", "task": "qlora", "gpu_counts": [1], "seq_len": 4096},
    {"model": "mixtral-8x7b", "task": "lora", "gpu_counts": [4]},
    {"model": "deepseek-v3", "task": "inference", "gpu_counts": [16], "quantization": "fp8"},
)


def measure() -> dict[str, Any]:
    """Return estimates per second, each read strictly from its fields; `limit` is the aim."""
    known = presets()
    estimate(read_request(SAMPLES[0], presets=known))
    count, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < SECONDS:
        for sample in SAMPLES:
            estimate(read_request(sample, presets=known))
        count += len(SAMPLES)
    per_s = count / elapsed
    return {
        "name": "sizing",
        "limit": AIM_PER_S,
        "ours": round(per_s),
        "ratio": round(per_s / AIM_PER_S, 2),
        "floor": FLOOR_PER_S,
        "unit": "estimates per second on one core",
    }
