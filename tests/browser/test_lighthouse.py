"""Lighthouse finds nothing to complain about: accessibility, best practices and SEO at 100.

Lighthouse is a test tool of Node's, installed by `npm ci --prefix tests/tools`. Without it these tests say so and are
skipped; with REQUIRE_BROWSER=1 its absence is a failure.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.browser.conftest import ARGUMENTS, CHROMIUM

LIGHTHOUSE = Path(__file__).resolve().parent.parent / "tools" / "node_modules" / ".bin" / "lighthouse"
CATEGORIES = ("accessibility", "best-practices", "seo")

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def lighthouse(tmp_path):
    """Return a function that measures an address and hands back the report."""
    if not (LIGHTHOUSE.exists() and CHROMIUM):
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER=1, but Lighthouse or Chromium was not found")
        pytest.skip("NO LIGHTHOUSE on this machine: its checks did not run (npm ci --prefix tests/tools)")

    def measure(url: str) -> dict:
        report = tmp_path / "report.json"
        flags = ["--headless=new", *ARGUMENTS, f"--user-data-dir={tmp_path / 'profile'}"]
        answer = subprocess.run(
            [
                str(LIGHTHOUSE),
                url,
                "--quiet",
                "--no-enable-error-reporting",
                "--output=json",
                f"--output-path={report}",
                f"--only-categories={','.join(CATEGORIES)}",
                f"--chrome-flags={' '.join(flags)}",
            ],
            env={**os.environ, "CHROME_PATH": CHROMIUM or ""},
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr[-2000:]
        return json.loads(report.read_text())

    return measure


def complaints(report: dict) -> list[str]:
    """Return what cost points, or could not be checked, in words."""
    counted = {ref["id"] for part in report["categories"].values() for ref in part["auditRefs"] if ref["weight"]}
    audits = [audit for name, audit in report["audits"].items() if name in counted]
    return [
        f"{audit['id']}: {audit['title']} {[place(item) for item in audit.get('details', {}).get('items', [])]}"
        for audit in audits
        if audit["scoreDisplayMode"] == "error" or audit["score"] not in (None, 1)
    ]


def place(item: dict) -> str:
    """Return where something was found: the element, or all that is told."""
    node = item.get("node")
    return f"{node['snippet']} {node.get('explanation', '')}" if node else json.dumps(item)


@pytest.mark.parametrize("path", ["/", "/gpus/h100-sxm/", "/use-cases/llm-training/"])
def test_lighthouse_gives_a_page_full_marks(lighthouse, live_server, site_data, path):
    report = lighthouse(live_server.url + path)
    assert report.get("runtimeError") is None
    assert complaints(report) == []
    assert {name: report["categories"][name]["score"] for name in CATEGORIES} == dict.fromkeys(CATEGORIES, 1)
