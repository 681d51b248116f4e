"""`manage.py sizing_report`: the engine against published measurements."""

import csv
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sizing.facts import MEASURED, TRACKED
from sizing.report import make_report

COLUMNS = ("rows", "median_error", "p90_error", "danger_share", "bigger_card_share", "oom_called_fits", "oom_rows")


class Command(BaseCommand):
    """Print how far off the engine is."""

    help = "Run the sizing engine over measured and tracked rows and print its errors."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--measured", type=Path, default=MEASURED, metavar="FILE", help="default: the site's own")
        parser.add_argument("--tracked", type=Path, default=TRACKED, metavar="FILE", help="default: the site's own")
        parser.add_argument("--json", action="store_true", help="print everything as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command."""
        try:
            report = make_report(measured=options["measured"], tracked=options["tracked"])
        except (OSError, UnicodeDecodeError, csv.Error, KeyError, ValueError) as problem:
            raise CommandError(f"The rows could not be read: {problem!r}") from problem
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=1))
            return
        for line in report_lines(report):
            self.stdout.write(line)


def report_lines(report: dict[str, Any]) -> list[str]:
    """Return the report as a table for people."""
    measured, tracked = report["summary"]["measured"], report["summary"]["tracked"]
    lines = [f"method {report['method_version']}", "", f"{'':24}" + "".join(f"{name:>19}" for name in COLUMNS)]
    groups = {"all of quality A and B": measured, **measured["by_task"], **measured["by_framework"]}
    for name, group in groups.items():
        lines.append(f"{name:24}" + "".join(f"{shown(group[column]):>19}" for column in COLUMNS))
    lines += ["", f"answered {measured['answered']} of {measured['scorable']} measured rows of quality A and B"]
    lines.append(f"tracked rows: {tracked['rows']}, median {shown(tracked['median_error'])}, "
                 f"p90 {shown(tracked['p90_error'])}")  # fmt: skip
    return lines


def shown(value: float | int | None) -> str:
    """Return a share in percent, a count as it is."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{100 * value:.2f} %"
