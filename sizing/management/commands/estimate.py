"""`manage.py estimate`: a sizing estimate on the command line, with the same fields as the API."""

import json
from argparse import ArgumentTypeError
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.json_body import MOST_BYTES
from sizing.engine.request import CHOICES, LIMITS, RequestError
from sizing.estimates import answer_estimate

SHOWN_FITS = 12


class Command(BaseCommand):
    """Estimate memory, speed, hours and cost."""

    help = "Estimate what a training run or a generation needs, and which GPUs it fits."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the API's fields as options."""
        model = parser.add_mutually_exclusive_group(required=True)
        model.add_argument("--model", help="a preset's name or Hugging Face id")
        model.add_argument("--config", type=Path, metavar="FILE", help="a config.json")
        model.add_argument("--params-b", type=float, help="billions of parameters")
        for name, words in CHOICES.items():
            parser.add_argument(option(name), choices=words)
        for name in LIMITS:
            parser.add_argument(option(name), type=int)
        parser.add_argument("--gpu-counts", type=whole_numbers, metavar="N,N", help="default 1,2,4,8")
        parser.add_argument("--lora-targets", type=words_of, metavar="NAME,NAME")
        parser.add_argument("--is-compiled", action="store_true", default=None, help="torch.compile is on")
        parser.add_argument("--json", action="store_true", help="print the API's answer")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        names = ("model", "params_b", *CHOICES, *LIMITS, "gpu_counts", "lora_targets", "is_compiled")
        fields = {name: options[name] for name in names if options[name] is not None}
        if options["config"]:
            fields["config"] = read_config_file(options["config"])
        try:
            answer = answer_estimate(fields, now=datetime.now(UTC))
        except RequestError as problem:
            raise CommandError(str(problem)) from problem
        for line in [json.dumps(answer, indent=1)] if options["json"] else answer_lines(answer):
            self.stdout.write(line)


def option(name: str) -> str:
    """Return a field's name as an option.

    >>> option("seq_len")
    '--seq-len'
    """
    return "--" + name.replace("_", "-")


def whole_numbers(text: str) -> list[int]:
    """Return numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as problem:
        raise ArgumentTypeError("whole numbers separated by commas") from problem


def words_of(text: str) -> list[str]:
    """Return words separated by commas."""
    return text.split(",")


def read_config_file(path: Path) -> Any:
    """Return the value of a JSON file. Raises CommandError."""
    try:
        with path.open("rb") as lines:
            body = lines.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise CommandError(f"config: {path} is larger than {MOST_BYTES // 1024} KB")
        return json.loads(body)
    except (OSError, ValueError, RecursionError) as problem:
        raise CommandError(f"config: {path} could not be read as JSON: {str(problem)[:200]}") from problem


def answer_lines(answer: dict[str, Any]) -> list[str]:
    """Return the answer for people."""
    lines = [
        f"{answer['parameters']:,} parameters",
        "",
        "GPUs  allocated  reserved  nvidia-smi  must have  (GiB per GPU)",
    ]
    for row in answer["per_gpu"]:
        lines.append(f"{row['gpu_count']:>4}  {row['allocated_gib']:>9.2f}  {row['reserved_gib']:>8.2f}  "
                     f"{row['nvidia_smi_gib']:>10.2f}  {row['high_gib']:>9.2f}  worst moment: {row['phase']}")  # fmt: skip
    fits = [fit for fit in answer["fits"] if fit["verdict"] != "no"]
    lines += ["", "fits (smallest first)"] if fits else ["", "fits no card of the catalogue at these counts"]
    for fit in sorted(fits, key=lambda fit: (fit["gpu_count"], fit["headroom_gib"]))[:SHOWN_FITS]:
        price = (
            f"{Decimal(fit['price_usd_per_gpu_hour']):.2f} USD per GPU-hour"
            if fit["price_usd_per_gpu_hour"]
            else "no price yet"
        )
        speed = f"{fit['tokens_per_s']:,.0f} tokens/s" if fit["tokens_per_s"] else "speed not known"
        lines.append(f"  {fit['gpu_count']} x {fit['gpu']:32} {fit['verdict']:5}  {speed:20} {price}")
    return [*lines, "", "assumed:", *(f"  {line}" for line in answer["assumptions"])]
