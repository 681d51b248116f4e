"""The ECB's file is read with suspicion: what is not exactly it changes nothing."""

from datetime import date
from decimal import Decimal

import pytest

from fx.ecb import MOST_BYTES, FileRejected, parse

NAMESPACE = "http://www.ecb.int/vocabulary/2002-08-01/eurofxref"


def body(rates: str = '<Cube currency="USD" rate="1.1476"/>', *, day: str = "2026-03-13", before: str = "") -> bytes:
    return f'{before}<e xmlns="{NAMESPACE}"><Cube><Cube time="{day}">{rates}</Cube></Cube></e>'.encode()


def test_the_real_layout_is_read_whole(shared_data):
    rates = parse((shared_data / "fx" / "eurofxref-daily.xml").read_bytes())
    assert rates.day == date(2026, 3, 13)
    assert len(rates.units_per_eur) == 29
    assert rates.units_per_eur["USD"] == Decimal("1.1476")
    assert rates.units_per_eur["GBP"] == Decimal("0.86503")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "XML"),
        (b"<html><body>Please wait</body></html>", "0 dated blocks"),
        (body()[:-20], "XML"),
        (body('<Cube currency="USD" rate="1,1476"/>'), "USD"),
        (body('<Cube currency="USD" rate="0"/>'), "USD"),
        (body('<Cube currency="USD" rate="-1.1"/>'), "USD"),
        (body('<Cube currency="USD" rate="1e3"/>'), "USD"),
        (body('<Cube currency="USD" rate="NaN"/>'), "USD"),
        (body('<Cube currency="USD" rate="١"/>'), "USD"),
        (body('<Cube currency="EUR" rate="1"/>'), "EUR"),
        (body('<Cube currency="usd" rate="1"/>'), "usd"),
        (body('<Cube currency="USD" rate="1"/><Cube currency="USD" rate="2"/>'), "twice"),
        (body(""), "no rates"),
        (body(day="13-03-2026"), "not a day"),
        (body(before='<!DOCTYPE e [<!ENTITY a "b">]>'), "XML"),
        (body(before='<!DOCTYPE e SYSTEM "file:///etc/passwd">'), "XML"),
        (body() + b" " * MOST_BYTES, "larger"),
    ],
)
def test_a_body_that_is_not_a_daily_file_is_refused_with_the_reason(bad, reason):
    with pytest.raises(FileRejected, match=reason):
        parse(bad)
