"""`docs/settlement.md` is true: its vectors are worked out by the formula, and its holds by the rule of holds."""

import re
from decimal import Decimal
from pathlib import Path

from common.money import round_to_micros
from marketplace.pricing import Terms, hold_micros
from marketplace.settlement.formula import Part, Priced, settle_hour

DOCUMENT = (Path(__file__).resolve().parent.parent.parent / "docs" / "settlement.md").read_text()
FX = (Decimal("0.8713837574"), Decimal("0.8695652174"))
RATE = Decimal("25.5")
VECTORS = re.findall(r"^\| (\d+) \| ([\d +]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", DOCUMENT, re.MULTILINE)


def test_every_vector_comes_to_what_the_document_says():
    assert [hour for hour, *_ in VECTORS] == ["10", "11", "12", "16"]
    for hour, seconds, *amounts in VECTORS:
        price, gpu_count = ("4.19", 1) if hour == "16" else ("2.88", 4)
        parts = [
            Part(seconds=int(part), fx_rate=fx, held_tax_rate_percent=RATE)
            for part, fx in zip(seconds.split(" + "), FX, strict=False)
        ]
        priced = Priced(price=Decimal(price), gpu_count=gpu_count, fee_percent=Decimal(10))
        line = settle_hour(priced, parts, tax_rate_percent=RATE)
        assert [line.net_micros, line.tax_micros, line.payable_micros] == [micros(amount) for amount in amounts], hour


def test_what_is_charged_is_the_sum_of_the_lines():
    lot = VECTORS[:3]
    assert sum(micros(net) + micros(tax) for _, _, net, tax, _ in lot) == micros(said("charged"))


def test_the_holds_are_those_of_the_fill_and_of_the_raise():
    lot = Terms(gpu_count=4, hours=3, fx_rate=FX[0], tax_rate_percent=RATE)
    assert hold_micros(Decimal("2.88"), lot) == micros(said("\nhold"))
    for fx, words in zip(FX, ("first hold", "raised at 16:32 by"), strict=True):
        hour = Terms(gpu_count=1, hours=1, fx_rate=fx, tax_rate_percent=RATE)
        assert hold_micros(Decimal("4.19"), hour) == micros(said(words))


def said(words: str) -> str:
    found = re.search(rf"{words} (\d+\.\d{{6}})", DOCUMENT)
    assert found is not None, words
    return found[1]


def micros(amount: str) -> int:
    return round_to_micros(Decimal(amount))
