"""`manage.py refresh_offers` and the task: a line per source, an exit code, and clear words for bad arguments."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from catalog import refresh, tasks
from catalog.load_catalogue import load_catalogue
from catalog.management.commands import refresh_offers
from catalog.models import Offer, Source
from catalog.refresh import DocumentReport, RefreshReport
from catalog.sources import source_named

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
AWS = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"
    "g6e.xlarge,L40S,1.0,4,32,1.861,,us-east-1\n"
    "g6e.xlarge,L40S,1.0,4,32,0.001,,us-west-2\n"
    "x9.large,Mystery 9000,1.0,4,32,1.5,,us-east-1\n"
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalogue(db) -> None:
    load_catalogue(now=NOW)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "aws.csv").write_text(AWS)
    return tmp_path


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("refresh_offers", *arguments, stdout=out)
    return out.getvalue()


def test_a_replay_prints_one_line_per_source_it_found(saved: Path):
    assert printed("--from", str(saved)) == (
        "skypilot: 3 rows read, 2 new, 0 changed, 0 gone, 1 held back, 1 unmapped\n"
    )
    assert printed("--source", "skypilot", "--from", str(saved / "aws.csv")) == (
        "skypilot: 3 rows read, 0 new, 0 changed, 0 gone, 1 held back, 1 unmapped\n"
    )


def test_a_source_of_the_repository_needs_no_network():
    assert printed("--source", "reference").startswith("reference: 136 rows read, 136 new, ")


@pytest.mark.parametrize("time", ["2026-05-20T06:00:00Z", "2026-05-20T08:00+02:00", "2026-05-20T06:00"])
def test_the_time_of_a_replay_may_be_given(saved: Path, time: str):
    printed("--from", str(saved), "--observed-at", time)
    assert set(Offer.objects.values_list("observed_at", flat=True)) == {datetime(2026, 5, 20, 6, tzinfo=UTC)}


def test_without_a_time_a_replay_counts_as_read_now(saved: Path):
    printed("--from", str(saved))
    [observed_at] = set(Offer.objects.values_list("observed_at", flat=True))
    assert datetime.now(UTC) - observed_at < timedelta(minutes=1)
    assert Source.objects.get().replayed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--source", "nowhere"], "no source is called 'nowhere'; known: reference, "),
        (["--from", "/nowhere"], "/nowhere does not exist"),
        (["--observed-at", "2026-05-20"], "needs --from"),
        (["--from", "{saved}", "--observed-at", "yesterday"], "'yesterday' is not a time"),
        (["--from", "{saved}", "--observed-at", "2999-01-01"], "lies in the future"),
        (["--from", "{saved}", "--source", "reference"], "reference is read from the repository"),
        (["--from", "{saved}/empty"], "holds no saved body of any source"),
        (["--from", "{saved}/empty", "--source", "skypilot"], "holds no saved body of skypilot"),
        (["--unknown"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_are_named_and_change_nothing(saved: Path, arguments: list[str], words: str):
    (saved / "empty").mkdir()
    with pytest.raises(CommandError, match=words):
        printed(*(argument.format(saved=saved) for argument in arguments))
    assert not Offer.objects.exists()


def report(name: str, *errors: str) -> RefreshReport:
    documents = [DocumentReport(key=f"d{number}", error=error) for number, error in enumerate(errors)]
    return RefreshReport(source_name=name, documents=documents)


@pytest.mark.parametrize(
    ("reference", "skypilot", "fails"),
    [
        (report("reference", "no"), report("skypilot", "no", "no"), True),
        (report("reference", "no"), report("skypilot", "no", ""), False),
        (report("reference", ""), report("skypilot", "no", "no"), False),
        (report("reference", "no"), RefreshReport(source_name="skypilot", not_read="it needs a key"), False),
    ],
)
def test_it_fails_only_when_every_source_failed(monkeypatch, reference, skypilot, fails):
    reports = {"reference": reference, "skypilot": skypilot}
    monkeypatch.setattr(refresh_offers, "refresh_source", lambda *, source_name, **_: reports[source_name])
    arguments = ("--source", "reference", "--source", "skypilot")
    if fails:
        with pytest.raises(CommandError, match="every source failed"):
            printed(*arguments)
    else:
        assert len(printed(*arguments).splitlines()) == 2


def test_the_line_of_a_source_names_what_failed_and_what_stood_still():
    documents = [DocumentReport(key="aws", error="the file looks cut"), DocumentReport(key="gcp", is_unchanged=True)]
    line = RefreshReport(source_name="skypilot", documents=documents).line
    assert line.endswith("1 of 2 documents unchanged, 1 of 2 documents failed (aws: the file looks cut)")


def test_the_task_refreshes_what_is_due_and_leaves_room_for_arguments(monkeypatch):
    monkeypatch.setattr(refresh, "ALL_SOURCES", [source_named("reference")])
    tasks.refresh_due_sources(unknown_argument=1)
    assert Offer.objects.count() == 136
    assert tasks.refresh_due_sources.name == "catalog.refresh_due_sources"
