"""Checks about the whole repository: locks, documents, size of files, words that do not belong."""

import ast
import json
import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
LOCKS = ["uv.lock", "requirements.lock", "requirements-demo.lock", "requirements-test.lock"]


def tracked(*patterns: str) -> list[Path]:
    answer = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=PROJECT, capture_output=True, check=True)
    return [PROJECT / name for name in answer.stdout.decode().split("\0") if name and (PROJECT / name).exists()]


def test_lock_files_name_no_host_but_the_public_index_and_its_file_host():
    for name in LOCKS:
        hosts = set(re.findall(r"https?://([^/\"\s]+)", (PROJECT / name).read_text()))
        assert hosts <= {"pypi.org", "files.pythonhosted.org"}, f"{name} names {hosts}"


def test_the_lock_of_the_test_tools_names_no_download_host_and_has_every_hash():
    packages = json.loads((PROJECT / "tests" / "tools" / "package-lock.json").read_text())["packages"]
    installed = {name: entry for name, entry in packages.items() if name}
    assert installed
    assert not [name for name, entry in installed.items() if "resolved" in entry or "integrity" not in entry]


def test_every_locked_package_has_a_hash():
    for name in LOCKS[1:]:
        text = (PROJECT / name).read_text()
        packages = re.findall(r"^[a-z0-9][\w.-]*==", text, re.MULTILINE)
        assert packages
        assert len(packages) == len(re.findall(r"^[a-z0-9][\w.-]*==[^\n]*\\\n    --hash=sha256:", text, re.MULTILINE))


def test_the_readme_is_short_and_leads_to_files_that_exist():
    text = (PROJECT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    assert "python3 manage.py demo" in text
    assert "python3 manage.py test" in text
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (PROJECT / target).exists(), target


def test_documents_exist_and_link_to_files_that_exist():
    for name in ("docs/architecture.md", "docs/glossary.md", "CHANGELOG.md"):
        assert (PROJECT / name).exists()
    for document in tracked("docs/*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_python_files_stay_under_400_lines_and_functions_under_70():
    for path in tracked("*.py"):
        if "migrations" in path.parts:
            continue
        source = path.read_text()
        assert len(source.splitlines()) <= 400, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or node.lineno) - node.lineno < 70, f"{path}: {node.name}"


def test_the_repository_names_no_machine_path():
    for path in tracked():
        if path.suffix in {".woff2", ".png", ".ico"}:
            continue
        text = path.read_text(errors="replace")
        assert not re.search(r"/(?:work|home|root)/[a-z]+/", text), path
