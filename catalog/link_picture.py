"""The picture that others show when they link to a GPU or its price history: 1200 by 630, in the site's own type.

`lay_out` says what stands where, `draw` paints it. Text that would run over the margin line is set smaller, and what
is still too long is cut, with an ellipsis. An age would be wrong as soon as somebody keeps the picture, so a price
carries the day and the clock of its reading.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from threading import Lock

from PIL import Image, ImageDraw, ImageFont

SIZE = (1200, 630)
LEFT, RIGHT = 80, 856
_MARGIN_LINES = (896, 900)
_PAPER, _INK, _MUTED, _MARK, _LEDGER, _LIGHT = "#f6f5f0", "#14161a", "#5a5f66", "#d4f25a", "#e3b7a4", "#ecebe6"
_FONTS = Path(__file__).resolve().parent.parent / "static" / "fonts"
_SMALLEST_SHARE = 0.55
_LATIN_END = "\u0100"
_LATIN_EXTENSION_END = "\u1eff"
_MARK_PADDING = (16, 10)
_UNIT_GAP = 36
_COLOURS = 64
_SPARK_BOX = (LEFT, 456, RIGHT, 524)
_SPARK_UNITS = (96, 24)
_STEP = re.compile(r"([MHV])([-\d.]+)(?: ([-\d.]+))?")
_LOGO_AT, _LOGO_SIZE, _LOGO_UNITS, _SMOOTH = (944, 176), 200, 32, 4
_drawing = Lock()  # a font remembers the glyph at hand: two threads must not share it at once


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What a picture says. `is_marked`: the price is live. `spark_path`: 30 days as a sparkline's path, "" for none."""

    title: str
    price: str
    unit: str
    kind: str
    note: str
    is_marked: bool
    spark_path: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text: its baseline's left end, its face and size, and how wide it runs."""

    text: str
    x: int
    baseline: int
    face: str
    size: int
    weight: int
    colour: str
    width: int
    is_marked: bool = False


def lay_out(picture: Picture) -> Sequence[Line]:
    """Return the lines of text in their places; each ends before the margin."""
    unit_room = 0 if not picture.unit else _width(picture.unit, "hanken", 34, 400) + _UNIT_GAP
    price = _line(picture.price, 342, "bricolage", 120, 700, room=RIGHT - LEFT - unit_room, is_marked=picture.is_marked)
    unit_x = price.x + price.width + _UNIT_GAP
    return [
        _line("GPU Bourse", 102, "bricolage", 46, 700),
        _line(picture.title, 206, "bricolage", 64, 700),
        price,
        *([_line(picture.unit, 342, "hanken", 34, 400, colour=_MUTED, x=unit_x)] if picture.unit else []),
        _line(picture.kind, 418, "hanken", 34, 500),
        _line(picture.note, 568, "hanken", 30, 400, colour=_MUTED),
    ]


def _line(
    text: str,
    baseline: int,
    face: str,
    size: int,
    weight: int,
    *,
    colour: str = _INK,
    x: int = LEFT,
    room: int | None = None,
    is_marked: bool = False,
) -> Line:
    room = (RIGHT - x if room is None else room) - (_MARK_PADDING[0] if is_marked else 0)
    smallest = int(size * _SMALLEST_SHARE)
    fitting = next((s for s in range(size, smallest, -2) if _width(text, face, s, weight) <= room), smallest)
    text = _cut(text, face, fitting, weight, room=room)
    width = _width(text, face, fitting, weight)
    return Line(
        text=text,
        x=x,
        baseline=baseline,
        face=face,
        size=fitting,
        weight=weight,
        colour=colour,
        width=width,
        is_marked=is_marked,
    )


def _cut(text: str, face: str, size: int, weight: int, *, room: int) -> str:
    if _width(text, face, size, weight) <= room:
        return text
    while text and _width(f"{text}…", face, size, weight) > room:
        text = text[:-1].rstrip()
    return f"{text}…"


def draw(picture: Picture) -> bytes:
    """Return the picture as PNG."""
    image = Image.new("RGB", SIZE, _PAPER)
    canvas = ImageDraw.Draw(image)
    with _drawing:
        for line in lay_out(picture):
            _paint(canvas, line)
    canvas.rectangle((LEFT, 140, RIGHT, 141), fill=_INK)
    for x in _MARGIN_LINES:
        canvas.line((x, 0, x, SIZE[1]), fill=_LEDGER, width=2)
    _paint_spark(canvas, picture.spark_path)
    image.paste(_logo(), _LOGO_AT)
    packed = BytesIO()
    few_colours = image.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)  # a third of the bytes, at no sight
    few_colours.save(packed, format="PNG", compress_level=6)
    return packed.getvalue()


def _paint(canvas: ImageDraw.ImageDraw, line: Line) -> None:
    x: float = line.x
    if line.is_marked:
        top = line.baseline - int(line.size * 0.78) - _MARK_PADDING[1]
        end = line.x + line.width + _MARK_PADDING[0]
        canvas.rectangle((line.x - _MARK_PADDING[0], top, end, line.baseline + 2 * _MARK_PADDING[1]), fill=_MARK)
    for font, run in _runs(line.text, line.face, line.size, line.weight):
        canvas.text((x, line.baseline), run, font=font, fill=line.colour, anchor="ls")
        x += font.getlength(run)


def _paint_spark(canvas: ImageDraw.ImageDraw, path: str) -> None:
    left, top, right, bottom = _SPARK_BOX
    scale_x, scale_y = (right - left) / _SPARK_UNITS[0], (bottom - top) / _SPARK_UNITS[1]
    end: tuple[float, float] | None = None
    for begin, end in _strokes(path):
        at = [(left + x * scale_x, top + y * scale_y) for x, y in (begin, end)]
        canvas.line(at, fill=_INK, width=4)
    if end is not None:
        x, y = left + end[0] * scale_x, top + end[1] * scale_y
        canvas.ellipse((x - 7, y - 7, x + 7, y + 7), fill=_INK)


def _strokes(path: str) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the level and upright strokes of a sparkline's path; where it moves on, there is none."""
    x = y = 0.0
    for command, first, second in _STEP.findall(path):
        before = (x, y)
        if command == "V":
            y = float(first)
        else:
            x, y = float(first), float(second or y)
        if command != "M":
            yield before, (x, y)


@cache
def _logo() -> Image.Image:
    """Return the mark of the site, drawn large and made small for smooth edges."""
    scale = _LOGO_SIZE * _SMOOTH / _LOGO_UNITS
    image = Image.new("RGB", (_LOGO_SIZE * _SMOOTH, _LOGO_SIZE * _SMOOTH), _PAPER)
    canvas = ImageDraw.Draw(image)

    def at(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x * scale, y * scale) for x, y in points]

    canvas.rounded_rectangle(at([(0, 0), (32, 32)]), radius=int(5 * scale), fill=_INK)
    for x1, x2, y in ((6, 15, 8.5), (6, 15, 23.5), (19, 26, 8.5), (19, 26, 23.5)):
        canvas.rectangle(at([(x1, y - 1.25), (x2, y + 1.25)]), fill=_LIGHT)
    canvas.polygon(at([(6.5, 11.5), (28, 11), (25.5, 20.5), (4, 20.5)]), fill=_MARK)
    canvas.rectangle(at([(8.5, 14.5), (22.5, 17.5)]), fill=_INK)
    return image.resize((_LOGO_SIZE, _LOGO_SIZE), Image.Resampling.LANCZOS)


def _width(text: str, face: str, size: int, weight: int) -> int:
    return -(-int(sum(font.getlength(run) for font, run in _runs(text, face, size, weight)) * 64) // 64)


def _runs(text: str, face: str, size: int, weight: int) -> Iterator[tuple[ImageFont.FreeTypeFont, str]]:
    """Yield the text in pieces, each with the file that has its letters: the fonts come in two, as for browsers."""
    for is_extended, letters in groupby(text, key=lambda letter: _LATIN_END <= letter <= _LATIN_EXTENSION_END):
        file = f"{face}-latin-ext.woff2" if is_extended else f"{face}-latin.woff2"
        yield _font(file, size, weight), "".join(letters)


@cache
def _font(file: str, size: int, weight: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.truetype(_FONTS / file, size)
    font.set_variation_by_axes([weight])
    return font
