"""Shared fixtures: where the reference data lies, and the switch for long runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.utils import translation
from pytest_django.plugin import DjangoDbBlocker

from tests.billing.gateway_server import fake_stripe, gateway_process  # noqa: F401  # fixtures for every folder

SHARED_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", default=False, help="fault and load runs too")


# Begun first, so that no worker is left alone with one of them at the end.
SLOW_FILES = (
    "browser/test_pages.py",
    "test_provider.py",
    "browser/test_rental.py",
    "test_top_up.py",
    "test_demo.py",
    "test_every_page.py",
    "test_schema.py",
    "test_route_walk.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not str(item.path).endswith(SLOW_FILES))
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long run: add --long"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The reference data beside the checkout; without it the tests that read it say so and are skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"REFERENCE DATA ABSENT: {SHARED_DATA.name}/ is not beside the checkout; this check did not run")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def each_test_begins_in_english() -> Iterator[None]:
    """A page that was asked for leaves its language behind in the thread."""
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The test database, without guests when it is dropped: a page that a closed browser no longer waits for may hold one."""
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(scope="session")
def kept_site_data() -> dict[str, bytes]:
    """The rows of `site_data` as the first test of this process loaded them, by table."""
    return {}


@pytest.fixture
def site_data(db: None, kept_site_data: dict[str, bytes]) -> None:
    """The repository's GPUs, clouds and dated list prices, as `demo` loads them; loaded once, then copied in."""
    with transaction.atomic(), connection.cursor() as cursor:
        for table, rows in kept_site_data.items():
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(rows)
        if kept_site_data:
            return
        call_command("load_catalogue", verbosity=0)
        for table in connection.introspection.table_names():
            if not table.startswith("catalog_"):
                continue
            with cursor.copy(f"COPY {table} TO STDOUT") as copy:
                kept_site_data[table] = b"".join(bytes(part) for part in copy)


@pytest.fixture(autouse=True, scope="session")
def flush_may_empty_what_only_grows() -> Iterator[None]:
    """Between transactional tests Django empties all tables; the ledger's own triggers would refuse that."""
    original = DatabaseOperations.execute_sql_flush

    def flush(self: DatabaseOperations, sql_list: list[str]) -> None:
        return original(
            self, ["SET session_replication_role = replica", *sql_list, "SET session_replication_role = origin"]
        )

    DatabaseOperations.execute_sql_flush = flush  # type: ignore[method-assign, assignment]
    yield
    DatabaseOperations.execute_sql_flush = original  # type: ignore[method-assign]
