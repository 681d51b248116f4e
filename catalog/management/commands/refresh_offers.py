"""`manage.py refresh_offers`: one refresh of the price sources now, over the network or from saved bodies."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.refresh import NothingSaved, RefreshReport, refresh_source
from catalog.sources import ALL_SOURCES, source_named
from catalog.sources.base import Source


class Command(BaseCommand):
    """Prints a line per source; exit code 1 only when every source failed."""

    help = "Refresh the price sources now; prints a line per source: rows read, offers new, changed, gone, held back."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options of `API.md`."""
        parser.add_argument("--source", action="append", metavar="NAME", help="only this source; may be repeated")
        parser.add_argument(
            "--from", dest="path", metavar="PATH", help="read a saved body: a file, or a folder of them"
        )
        parser.add_argument(
            "--observed-at", metavar="TIME", help="when the saved bodies were read, e.g. 2026-11-30T06:00Z"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Refresh one source after the other; none keeps another from its turn."""
        now = datetime.now(UTC)
        path = _path(options["path"])
        observed_at = _time(options["observed_at"], now) if options["observed_at"] else None
        if observed_at and path is None:
            raise CommandError("--observed-at says when a saved body was read: it needs --from")
        reports = self._reports(
            _sources(options["source"], path), now, path, observed_at, is_named=bool(options["source"])
        )
        if path and not reports:
            raise CommandError(f"{path} holds no saved body of any source")
        if reports and all(report.is_failure for report in reports):
            raise CommandError("every source failed")

    def _reports(
        self, sources: list[Source], now: datetime, path: Path | None, observed_at: datetime | None, *, is_named: bool
    ) -> list[RefreshReport]:
        """Refresh the sources. One that has nothing at `path` is passed over, unless it was asked for by name."""
        reports = []
        for source in sources:
            try:
                report = refresh_source(source_name=source.name, now=now, from_path=path, observed_at=observed_at)
            except NothingSaved as why:
                if is_named:
                    raise CommandError(str(why)) from why
                continue
            self.stdout.write(report.line)
            reports.append(report)
        return reports


def _sources(names: list[str] | None, path: Path | None) -> list[Source]:
    """Return the named sources, or all; from saved bodies only those that read the network. Raises CommandError."""
    try:
        sources = [source_named(name) for name in dict.fromkeys(names)] if names else list(ALL_SOURCES)
    except KeyError as why:
        raise CommandError(why.args[0]) from why
    if path is None:
        return sources
    local = [source.name for source in sources if not source.needs_network]
    if names and local:
        raise CommandError(f"{', '.join(local)} is read from the repository: it takes no --from")
    return [source for source in sources if source.needs_network]


def _path(text: str | None) -> Path | None:
    if text is None:
        return None
    path = Path(text)
    if not path.exists():
        raise CommandError(f"{path} does not exist")
    return path


def _time(text: str, now: datetime) -> datetime:
    """Return a time of the command line in UTC; one without an offset is taken as UTC. Raises CommandError."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as why:
        raise CommandError(f"--observed-at {text!r} is not a time such as 2026-11-30T06:00Z") from why
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    if time > now + timedelta(minutes=1):
        raise CommandError(f"--observed-at {text} lies in the future")
    return time
