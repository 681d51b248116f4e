"""Diffusion models: measured references and plain arithmetic. Rough: no equation here was validated.

Inference holds the components that stay resident (transformer or UNet, text encoders, VAE) at their bytes, and the
activations of the largest stage on top, which only a measurement tells.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffusionReference:
    """A figure that somebody measured, GiB on one GPU, with the page that says so."""

    model: str
    task: Literal["inference", "lora", "full"]
    setting: str
    measured_gib: float
    source_url: str


_DIFFUSERS = "https://huggingface.co/docs/diffusers"
REFERENCES: tuple[DiffusionReference, ...] = (
    DiffusionReference(model="FLUX.1-dev", task="inference", setting="bf16, all components resident", measured_gib=31.4,
                       source_url="https://huggingface.co/blog/diffusers-quantization"),
    DiffusionReference(model="FLUX.1-dev", task="inference", setting="transformer and T5 in NF4", measured_gib=12.6,
                       source_url="https://huggingface.co/blog/diffusers-quantization"),
    DiffusionReference(model="SD3-medium", task="inference", setting="fp16", measured_gib=18.8,
                       source_url="https://huggingface.co/blog/quanto-diffusers"),
    DiffusionReference(model="PixArt-Sigma", task="inference", setting="fp16", measured_gib=12.1,
                       source_url="https://huggingface.co/blog/quanto-diffusers"),
    DiffusionReference(model="CogVideoX-5B", task="inference", setting="bf16, diffusers' savings on", measured_gib=20.7,
                       source_url=f"{_DIFFUSERS}/training/cogvideox"),
    DiffusionReference(model="HunyuanVideo", task="inference", setting="720p, 129 frames", measured_gib=60.0,
                       source_url="https://github.com/Tencent/HunyuanVideo/blob/main/README.md"),
    DiffusionReference(model="CogVideoX-5B", task="lora", setting="49 frames, ZeRO-2 on 8 GPUs", measured_gib=63.0,
                       source_url=f"{_DIFFUSERS}/training/cogvideox"),
    DiffusionReference(model="CogVideoX-5B", task="full", setting="49 frames, ZeRO-2 on 8 GPUs", measured_gib=75.0,
                       source_url=f"{_DIFFUSERS}/training/cogvideox"),
    DiffusionReference(model="Stable Diffusion 1.4", task="full", setting="bf16, DreamBooth script", measured_gib=27.5,
                       source_url="https://github.com/huggingface/peft/blob/main/README.md"),
    DiffusionReference(model="Stable Diffusion 1.4", task="lora", setting="bf16, DreamBooth script", measured_gib=15.5,
                       source_url="https://github.com/huggingface/peft/blob/main/README.md"),
)  # fmt: skip


def resident_bytes(*, b_params: float, bytes_per_weight: float = 2.0) -> float:
    """Return the bytes of resident components.

    >>> round(resident_bytes(b_params=16.9) / 2**30, 1)
    31.5
    """
    return b_params * 1e9 * bytes_per_weight
