"""Compile `locale/*/LC_MESSAGES/django.po` into the `.mo` files that Django reads, without GNU gettext.

`demo` and `test` do it when they start, the image while it is built (`python -m config.translations`); the compiled
files are not kept in the repository.
"""

import os
import sys
import tempfile
from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALE = Path(__file__).resolve().parent.parent / "locale"


def compile_translations(folder: Path = LOCALE) -> list[Path]:
    """Compile what is newer than its compiled file; return the files written. Two runs at once do no harm."""
    written = []
    for source in sorted(folder.glob("*/LC_MESSAGES/*.po")):
        target = source.with_suffix(".mo")
        if not target.exists() or target.stat().st_mtime_ns < source.stat().st_mtime_ns:
            _compile(source, target)
            written.append(target)
    return written


def _compile(source: Path, target: Path) -> None:
    with source.open("rb") as text:
        catalogue = read_po(text, locale=source.parent.parent.name, abort_invalid=True)
    number, whole = tempfile.mkstemp(dir=target.parent, suffix=".part")
    with os.fdopen(number, "wb") as part:
        write_mo(part, catalogue)
    Path(whole).chmod(0o644)
    Path(whole).replace(target)


if __name__ == "__main__":
    compile_translations()
    sys.exit(0)
