"""The estimate call as the API's description shows it. The values are checked by `sizing.engine.request`."""

from typing import Any

from rest_framework import serializers

from sizing.engine.request import CHOICES, LIMITS, MOST_B_PARAMS, MOST_COUNTS, MOST_GPUS


def _choice(name: str, help_text: str) -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=CHOICES[name], required=False, allow_null=True, help_text=help_text)


def _whole(name: str, help_text: str, *, least: int = 1) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=least, max_value=LIMITS[name], required=False, allow_null=True, help_text=help_text
    )


class EstimateRequestSerializer(serializers.Serializer[Any]):
    """What to estimate: exactly one of `model`, `config` and `params_b`; all else has a default that is told."""

    model = serializers.CharField(required=False, allow_null=True, help_text="A preset's name or Hugging Face id.")
    config = serializers.DictField(required=False, allow_null=True, help_text="The content of a config.json.")
    params_b = serializers.FloatField(
        min_value=0.001, max_value=MOST_B_PARAMS, required=False, allow_null=True, help_text="Billions of parameters."
    )
    task = _choice("task", "Default: full.")
    seq_len = _whole("seq_len", "Tokens per sequence. Default 2048; left out, the interval is wider.")
    micro_batch = _whole("micro_batch", "Sequences per GPU and step, training. Default 1.")
    gradient_accumulation = _whole("gradient_accumulation", "Micro-batches per optimiser step.")
    precision = _choice("precision", "mixed: autocast over float32 weights.")
    optimizer = _choice("optimizer", "Default: the framework's.")
    checkpointing = _choice("checkpointing", "Activation checkpointing. Default: the framework's.")
    loss = _choice("loss", "How the loss handles the logits. Default: the framework's.")
    is_compiled = serializers.BooleanField(required=False, allow_null=True, help_text="Whether torch.compile is on.")
    lora_rank = _whole("lora_rank", "Default 16.")
    lora_targets = serializers.ListField(
        child=serializers.ChoiceField(choices=("q", "k", "v", "o", "gate", "up", "down", "head")),
        required=False,
        allow_null=True,
        help_text="Adapted matrices. Default: all of the blocks.",
    )
    framework = _choice("framework", "Default: hf_trainer, for inference vllm.")
    quantization = _choice("quantization", "Of the base model. Default: none, for qlora nf4.")
    kv_cache_tokens = _whole("kv_cache_tokens", "Tokens held in the cache in all. Default: seq_len x batch.", least=0)
    batch = _whole("batch", "Sequences generated at once, inference. Default 1.")
    sharding = _choice("sharding", "Default: fsdp, for inference tp, for deepspeed zero3.")
    gpu_counts = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=MOST_GPUS),
        min_length=1,
        max_length=MOST_COUNTS,
        required=False,
        allow_null=True,
        help_text="Default 1, 2, 4, 8.",
    )
    tokens = _whole("tokens", "Tokens of the whole run, for hours and cost.")


class PerGpuSerializer(serializers.Serializer[Any]):
    """Memory of one GPU. `high_gib` is what a card must have for the verdict `fits`; `parts` sum to `allocated_gib`."""

    gpu_count = serializers.IntegerField()
    allocated_gib = serializers.FloatField(help_text="Tensors at the worst moment.")
    reserved_gib = serializers.FloatField(help_text="What torch's allocator holds then.")
    nvidia_smi_gib = serializers.FloatField(help_text="What nvidia-smi shows then.")
    low_gib = serializers.FloatField()
    high_gib = serializers.FloatField()
    phase = serializers.CharField(help_text="The worst moment.")
    parts = serializers.DictField(child=serializers.FloatField())


class FitSerializer(serializers.Serializer[Any]):
    """One GPU of the catalogue at one count. Prices are net of tax; null where there is none."""

    gpu = serializers.CharField()
    gpu_count = serializers.IntegerField()
    verdict = serializers.ChoiceField(choices=("fits", "tight", "no"))
    headroom_gib = serializers.FloatField(help_text="The card's real memory less nvidia_smi_gib.")
    tokens_per_s = serializers.FloatField(allow_null=True, help_text="Of all GPUs together.")
    hours = serializers.FloatField(allow_null=True)
    cost_usd = serializers.CharField(allow_null=True)
    price_usd_per_gpu_hour = serializers.CharField(allow_null=True)
    price_kind = serializers.ChoiceField(choices=("exchange", "on_demand", "list"), allow_null=True)
    spot_price_usd_per_gpu_hour = serializers.CharField(allow_null=True)
    spot_cost_usd = serializers.CharField(allow_null=True, help_text="With the time that interruptions waste.")


class EstimateSerializer(serializers.Serializer[Any]):
    """The answer."""

    parameters = serializers.IntegerField()
    per_gpu = PerGpuSerializer(many=True)
    fits = FitSerializer(many=True)
    assumptions = serializers.ListField(child=serializers.CharField())
    method_version = serializers.CharField()
