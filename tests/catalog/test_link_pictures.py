"""The pictures of link previews: their size, what they say, that it fits, and that nobody gets them twice for nothing."""

from datetime import UTC, date, datetime, timedelta
from io import BytesIO

import pytest
from django.conf import settings
from django.utils.translation import override
from PIL import Image

from catalog.history_queries import hour_of
from catalog.link_picture import LEFT, RIGHT, SIZE, Picture, draw, lay_out
from catalog.models import Gpu
from catalog.queries import price_table
from catalog.views.link_pictures import picture_of
from tests.factories import make_best_ask, make_gpu, make_list_offer, make_live_offer, make_snapshot

PICTURES = ("/og/gpus/h100-sxm.png", "/og/prices/h100-sxm.png")
MARK = (212, 242, 90)


def picture(**values: object) -> Picture:
    defaults = {
        "title": "H100 SXM",
        "price": "2.88 USD",
        "unit": "per GPU-hour",
        "kind": "on demand at Lambda, read 30 Nov 2026, 14:02 UTC",
        "note": "80 GB of HBM3.",
        "is_marked": True,
    }
    return Picture(**{**defaults, **values})  # type: ignore[arg-type]


def opened(content: bytes) -> Image.Image:
    image = Image.open(BytesIO(content))
    image.load()
    return image.convert("RGB")


def colours(image: Image.Image) -> set[tuple[int, ...]]:
    return {colour for _, colour in image.getcolors(SIZE[0] * SIZE[1]) or []}  # type: ignore[misc]


@pytest.fixture
def gpu(db):
    return make_gpu(label="H100 SXM")


@pytest.mark.parametrize("path", PICTURES)
def test_a_picture_is_a_png_of_1200_by_630(client, gpu, path):
    make_live_offer(gpu=gpu, price="2.88")
    answer = client.get(path)
    assert answer["Content-Type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG\r\n\x1a\n")
    assert opened(answer.content).size == (1200, 630)
    assert len(answer.content) < 60_000


def is_within(line) -> bool:
    return line.x >= LEFT and line.x + line.width <= RIGHT and line.baseline - line.size > 0 and line.baseline < SIZE[1]


@pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES])
def test_the_text_of_every_gpu_fits_in_every_language(site_data, language):
    now = datetime.now(UTC)
    make_best_ask(gpu=Gpu.objects.get(slug="h100-sxm"), price="1234.5678", observed_at=now)
    prices = price_table(now=now)
    with override(language):
        for card in Gpu.objects.all():
            lines = lay_out(picture_of(card, prices[card.slug].headline, note="80 GB of HBM3."))
            assert all(map(is_within, lines)), card.slug
            assert not any("…" in line.text for line in lines), card.slug


def test_a_long_name_is_set_smaller_and_one_that_never_fits_is_cut():
    small = lay_out(picture(title="RTX PRO 6000 Blackwell Server Edition Max-Q"))[1]
    assert small.size < lay_out(picture())[1].size
    assert "…" not in small.text
    cut = lay_out(picture(title="Supercalifragilistic " * 20, price="9" * 90, kind="x" * 300, note="y" * 300))
    assert all(map(is_within, cut))
    assert cut[1].text.endswith("…")


def test_what_the_layout_says_is_what_is_painted():
    plain = opened(draw(picture(price="", unit="", kind="", note="", title="", is_marked=False)))
    for line in lay_out(picture(is_marked=False)):
        assert line.width > 0
    painted = opened(draw(picture(is_marked=False, spark_path="")))
    right_of_text = (RIGHT + 1, 0, 895, SIZE[1])
    assert painted.crop(right_of_text).tobytes() == plain.crop(right_of_text).tobytes()
    assert painted.tobytes() != plain.tobytes()


def test_letters_of_polish_are_in_the_fonts():
    boxes = {letter: lay_out(picture(title=letter * 4))[1].width for letter in "ąęłńśżźćó"}
    missing = lay_out(picture(title="\u0416" * 4))[1].width  # a letter that neither file has
    assert all(width != missing for width in boxes.values())


def test_the_mark_is_on_live_prices_only(gpu, client):
    make_list_offer(gpu=gpu, price="3.10", priced_on=date(2026, 5, 7))
    assert not any(
        _is_near(colour, MARK) for colour in colours(opened(client.get(PICTURES[0]).content).crop((0, 142, 890, 630)))
    )
    make_live_offer(gpu=gpu, price="2.88")
    assert any(
        _is_near(colour, MARK) for colour in colours(opened(client.get(PICTURES[0]).content).crop((0, 142, 890, 630)))
    )


def _is_near(colour: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return sum(abs(a - b) for a, b in zip(colour, other, strict=True)) < 24


def test_a_price_says_whose_it_is_and_when_it_was_read(gpu):
    now = datetime(2026, 11, 30, 14, 2, tzinfo=UTC)
    assert said(gpu, now) == ("no price yet", "None of our sources lists it today.")
    make_list_offer(gpu=gpu, price="3.10", priced_on=date(2026, 5, 7), cloud="lambda")
    assert said(gpu, now) == ("3.10\N{NO-BREAK SPACE}USD", "list price of Lambda, 7 May 2026")
    make_best_ask(gpu=gpu, price="2.50", observed_at=now)
    assert said(gpu, now) == ("2.50\N{NO-BREAK SPACE}USD", "best offer here on 30 Nov 2026, 14:02 UTC")


def said(gpu, now: datetime) -> tuple[str, str]:
    shown = picture_of(gpu, price_table(now=now)[gpu.slug].headline, note="")
    return shown.price, shown.kind


def test_the_history_picture_has_the_line_of_30_days(gpu, client):
    now = hour_of(datetime.now(UTC))
    make_live_offer(gpu=gpu, price="2.88")
    without = opened(client.get(PICTURES[1]).content)
    for days, price in ((20, "3.20"), (7, "3.60"), (0, "2.88")):
        make_snapshot(gpu=gpu, at=now - timedelta(days=days), price=price)
    with_line = opened(client.get(PICTURES[1]).content)
    box = (LEFT, 440, RIGHT, 530)
    assert len(colours(without.crop(box))) == 1
    assert len(colours(with_line.crop(box))) > 1


@pytest.mark.parametrize("path", PICTURES)
def test_who_holds_the_picture_gets_304_until_it_says_something_else(client, gpu, path):
    offer = make_live_offer(gpu=gpu, price="2.88")
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    assert "public" in first["Cache-Control"]
    type(offer).objects.update(price_usd_per_gpu_hour="2.79")
    changed = client.get(path, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_an_unknown_gpu_has_no_picture(client, gpu):
    assert client.get("/og/gpus/h9000.png").status_code == 404
    assert client.get("/og/prices/h9000.png").status_code == 404


@pytest.mark.parametrize(
    ("page", "path"),
    [("/gpus/h100-sxm/", "/og/gpus/h100-sxm.png"), ("/nl/prices/h100-sxm/", "/nl/og/prices/h100-sxm.png")],
)
def test_a_page_names_its_own_picture_and_others_the_common_one(client, gpu, page, path):
    assert f'<meta property="og:image" content="http://testserver{path}">' in client.get(page).content.decode()
    assert client.get(path).status_code == 200
    assert "img/og" in client.get("/clouds/").content.decode()
