"""The questions of `/sizing/`, and the address that holds the answers.

Query parameters, for pages that lead here already filled in; each may be left out:

    model                a preset's name or Hugging Face id: llama-3.1-8b, meta-llama/Llama-3.1-8B
    params_b             instead of it, billions of parameters: 13 or 0.5
    config               instead of both, what matters of a config.json, as JSON (`calculator.config_text.for_address`)
    task                 full, lora, qlora, inference
    seq_len              tokens per sequence
    batch                sequences on each GPU and step; in inference sequences generated at once
    tokens               tokens of the whole run, for hours and cost: 2000000000, 500M, 2B
    gpu_counts           at most four numbers of GPUs: 1,2,4,8
    framework, precision, optimizer, checkpointing, loss, quantization, sharding, gradient_accumulation, lora_rank
                         as the API's estimate takes them; left out: as the framework does it
    interruption_hours, save_seconds, restart_seconds
                         how a spot machine is taken to behave
    show=all             every GPU that holds the job instead of the cheapest
    currency             EUR, GBP: what costs are shown in

What cannot be read is an error at its field; nothing is answered then.
"""

from collections.abc import Mapping
from typing import IO, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from sizing.calculator import config_text
from sizing.calculator.address import DETAILS, MODEL_NAMES, SPOT
from sizing.calculator.numbers import read_b_params, read_tokens
from sizing.calculator.words import QUESTIONS, choices_of, config_trouble, refusal
from sizing.engine.config_reader import ConfigError
from sizing.engine.interruptions import Interruptions
from sizing.engine.request import LIMITS, MOST_GPUS, RequestError

USUAL_MODEL, USUAL_SEQ_LEN, USUAL_TOKENS = "llama-3.1-8b", "2048", "100M"
USUAL_BATCH = {"inference": "16"}
MOST_COUNTS = 4
_USUAL = Interruptions()


class _Text(forms.CharField):
    """A short answer, shown as it was typed."""

    def __init__(self, name: str, *, most: int = 20, **attributes: str) -> None:
        attrs = {"autocomplete": "off", "spellcheck": "false", **attributes}
        super().__init__(label=QUESTIONS[name], required=False, max_length=most, widget=forms.TextInput(attrs))


class ModelSize(_Text):
    """Billions of parameters."""

    def clean(self, value: Any) -> float | None:
        """Return the number, None where the field is blank."""
        text = super().clean(value)
        size = read_b_params(text) if text else None
        if text and (size is None or not 0.001 <= size <= 100_000):
            raise ValidationError(_("Give the billions of parameters as a number between 0.001 and 100,000."))
        return size


class Tokens(_Text):
    """Tokens of the whole run: 500M, 2B, 1000000."""

    def clean(self, value: Any) -> int | None:
        """Return the number, None where the field is blank."""
        text = super().clean(value)
        count = read_tokens(text) if text else None
        if text and (count is None or not 1 <= count <= LIMITS["tokens"]):
            raise ValidationError(_("Give a whole number of tokens above 0, such as 500M, 2B or 1000000."))
        return count


class Counts(_Text):
    """Up to four numbers of GPUs."""

    def clean(self, value: Any) -> list[int] | None:
        """Return the numbers in ascending order, None where the field is blank."""
        text = super().clean(value)
        if not text:
            return None
        words = text.replace(",", " ").split()
        counts = sorted({int(word) for word in words if word.isascii() and word.isdecimal() and len(word) < 7})
        if len(words) > MOST_COUNTS or len(counts) != len(set(words)) or min(counts, default=0) < 1:
            raise ValidationError(_("Give up to four whole numbers, such as 1, 2, 4, 8."))
        if counts[-1] > MOST_GPUS:
            raise ValidationError(_("No more than %(most)s GPUs are counted."), params={"most": f"{MOST_GPUS:,}"})
        return counts


def _whole(name: str, *, most: int, least: int = 1, usual: float | None = None) -> forms.IntegerField:
    attrs = {"inputmode": "numeric", "autocomplete": "off"}
    if usual is not None:
        attrs["placeholder"] = f"{usual:g}"
    return forms.IntegerField(
        label=QUESTIONS[name], required=False, min_value=least, max_value=most, widget=forms.TextInput(attrs)
    )


def _choice(name: str, *, has_usual: bool = True) -> forms.ChoiceField:
    usual = [("", _("as is usual"))] if has_usual else []
    return forms.ChoiceField(label=QUESTIONS[name], required=False, choices=[*usual, *choices_of(name)])


class CalculatorForm(forms.Form):
    """The questions; `fields()` is what the engine is asked, `interruptions()` how spot machines behave."""

    model = _Text("model", most=200, list="models", placeholder="llama-3.1-8b")
    params_b = ModelSize("params_b", inputmode="decimal")
    config = forms.CharField(
        label=QUESTIONS["config"], required=False, max_length=config_text.MOST_IN_ADDRESS, widget=forms.HiddenInput
    )
    task = _choice("task", has_usual=False)
    seq_len = _whole("seq_len", most=LIMITS["seq_len"])
    batch = _whole("batch", most=LIMITS["micro_batch"])
    tokens = Tokens("tokens")
    gpu_counts = Counts("gpu_counts", most=40, placeholder="1, 2, 4, 8")
    framework = _choice("framework")
    precision = _choice("precision")
    optimizer = _choice("optimizer")
    checkpointing = _choice("checkpointing")
    loss = _choice("loss")
    quantization = _choice("quantization")
    sharding = _choice("sharding")
    gradient_accumulation = _whole("gradient_accumulation", most=LIMITS["gradient_accumulation"])
    lora_rank = _whole("lora_rank", most=LIMITS["lora_rank"])
    interruption_hours = _whole("interruption_hours", most=8_760, usual=_USUAL.mean_s / 3600)
    save_seconds = _whole("save_seconds", most=86_400, usual=_USUAL.checkpoint_s)
    restart_seconds = _whole("restart_seconds", most=86_400, least=0, usual=_USUAL.restart_s)
    show = forms.CharField(required=False, max_length=10)

    def __init__(self, sent: Mapping[str, str]) -> None:
        super().__init__(filled_in(sent))
        self.config_fields: dict[str, Any] | None = None

    def clean_config(self) -> str:
        """Read the config that the address holds."""
        text: str = self.cleaned_data["config"]
        if text:
            try:
                self.config_fields = config_text.from_address(text)
            except config_text.ConfigTextError as problem:
                raise ValidationError(str(config_trouble(problem.code))) from problem
        return text

    def clean(self) -> dict[str, Any]:
        """Refuse two models at once."""
        given = [name for name in MODEL_NAMES if self.data.get(name)]
        if len(given) > 1:
            self.add_error(given[1], _("Give a name, a number of parameters or a config.json, not two of them."))
        return self.cleaned_data

    def fields_asked(self) -> dict[str, Any]:
        """Return the engine's request fields of a form that is right."""
        values = self.cleaned_data
        batch = "batch" if values["task"] == "inference" else "micro_batch"
        asked = {
            "model": values["model"],
            "params_b": values["params_b"],
            "config": self.config_fields,
            "task": values["task"],
            "seq_len": values["seq_len"],
            batch: values["batch"],
            "tokens": values["tokens"],
            **{name: values[name] for name in DETAILS},
        }
        return {name: value for name, value in asked.items() if value not in (None, "")}

    def interruptions(self) -> Interruptions:
        """Return how a spot machine is taken to behave."""
        hours, save, restart = (self.cleaned_data[name] for name in SPOT)
        return Interruptions(
            mean_s=_USUAL.mean_s if hours is None else hours * 3600.0,
            checkpoint_s=_USUAL.checkpoint_s if save is None else float(save),
            restart_s=_USUAL.restart_s if restart is None else float(restart),
        )

    def refuse(self, problem: RequestError) -> None:
        """Put what the engine refused at its field."""
        name = problem.field.partition(".")[0]
        name = {"micro_batch": "batch"}.get(name, name)
        self.add_error(name if name in self.fields else None, refusal(problem, values=self.data))

    def refuse_config(self, problem: config_text.ConfigTextError) -> None:
        """Put what is wrong with a file or a pasted text at the config."""
        self.add_error("config", str(config_trouble(problem.code)))

    @property
    def has_open_details(self) -> bool:
        """Whether anything in the fold was answered, or is wrong: it stands open then."""
        return any(self[name].value() or self[name].errors for name in (*DETAILS, *SPOT))


def filled_in(sent: Mapping[str, str]) -> dict[str, str]:
    """Return what was sent, with the usual answer to each main question that was left open."""
    answers = {name: value for name, value in sent.items() if value != ""}
    usual = {"task": "full", "seq_len": USUAL_SEQ_LEN, "tokens": USUAL_TOKENS}
    usual["batch"] = USUAL_BATCH.get(answers.get("task", ""), "1")
    if not any(answers.get(name) for name in MODEL_NAMES):
        usual["model"] = USUAL_MODEL
    return {**usual, **answers}


def config_sent(text: str, file: IO[bytes] | None) -> str | None:
    """Return the config that was pasted or uploaded, as the address holds it; None where there is none.

    A file comes before a text. Raises ConfigTextError, RequestError.
    """
    raw = file.read(config_text.MOST_BYTES + 1) if file else text.encode("utf-8", "surrogatepass")
    if len(raw) <= config_text.MOST_BYTES and not raw.strip():
        return None
    try:
        return config_text.for_address(config_text.read_config_text(raw))
    except ConfigError as problem:
        raise RequestError(f"config.{problem.field}", "invalid", problem.message) from problem
