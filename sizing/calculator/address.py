"""From what was sent to the address that says the same: the page's whole state, and nothing else.

>>> address({"model": "qwen3-8b", "task": "lora", "loss": "", "go": "1"}, before={})
[('model', 'qwen3-8b'), ('task', 'lora')]
>>> address({"model": "qwen3-8b", "params_b": "13"}, before={"model": "qwen3-8b"})
[('params_b', '13')]
"""

from collections.abc import Mapping

MODEL_NAMES = ("config", "params_b", "model")
QUESTIONS = ("task", "seq_len", "batch", "tokens")
DETAILS = (
    "gpu_counts",
    "framework",
    "precision",
    "optimizer",
    "checkpointing",
    "loss",
    "quantization",
    "sharding",
    "gradient_accumulation",
    "lora_rank",
)
SPOT = ("interruption_hours", "save_seconds", "restart_seconds")
VIEW = ("show", "currency")
NAMES = (*MODEL_NAMES, *QUESTIONS, *DETAILS, *SPOT, *VIEW)
MOST_CHARACTERS = 200  # of one answer; nothing that anybody means is longer


def address(sent: Mapping[str, str], *, before: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the parameters of the address in their fixed order, blank ones left out.

    Of model, number of parameters and config only one can hold. It is the one that was not there `before`, or that
    changed; where nothing did, a config comes before a number, and a number before a name.
    """
    values = {name: sent.get(name, "").strip() for name in NAMES}
    given = [name for name in MODEL_NAMES if values[name]]
    changed = [name for name in given if values[name] != before.get(name, "").strip()]
    chosen = (changed or given or [""])[0]
    return [
        (name, values[name] if name == "config" else values[name][:MOST_CHARACTERS])
        for name in NAMES
        if values[name] and (name not in MODEL_NAMES or name == chosen)
    ]
