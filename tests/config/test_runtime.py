"""Embedded servers: where their sockets lie, how root starts PostgreSQL, what a half-made state does."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from config.runtime import addresses, gateway, postgres, root, servers, valkey
from config.runtime.processes import Child, note_children, start_ticks, stop_leftovers

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs a disguise")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BOURSE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    yield tmp_path / "home"
    if addresses.run_folder() != tmp_path / "home" / "run":
        shutil.rmtree(addresses.run_folder(), ignore_errors=True)


def modes_above(path: Path) -> list[int]:
    return [parent.stat().st_mode for parent in path.parents]


def server_version() -> int:
    with psycopg.connect(postgres._conninfo(addresses.DATABASE_NAME)) as connection:
        return connection.info.server_version // 10000


def test_the_servers_start_twice_on_private_sockets_and_touch_nothing_above_their_home(home):
    before, people = modes_above(home), Path("/etc/passwd").read_text()
    for _run in range(2):
        with servers.owned(dict(os.environ), quiet=True):
            assert server_version() >= postgres.OLDEST_MAJOR
            assert valkey.accepts_connections()
            assert addresses.postgres_socket_folder().stat().st_mode & 0o077 == 0
    assert not postgres.accepts_connections()
    assert modes_above(home) == before
    assert Path("/etc/passwd").read_text() == people


@AS_ROOT
def test_root_without_user_namespaces_runs_postgres_as_nobody_from_a_room_of_its_own(home, monkeypatch):
    if shutil.which("setpriv") is None:
        pytest.skip("NO SETPRIV on this machine: the second way for root was not run")
    disguise = root.Disguise(prefix=tuple(root._SETPRIV), by_uid=True)
    monkeypatch.setattr(root, "choose_disguise", lambda: disguise)
    home.mkdir(mode=0o700)
    room = root.private_room(home)
    try:
        child = postgres.start(dict(os.environ))
        try:
            assert server_version() >= postgres.OLDEST_MAJOR
            assert child.popen is not None
            assert Path(f"/proc/{child.popen.pid}").stat().st_uid == root.NOBODY
        finally:
            child.stop()
    finally:
        shutil.rmtree(room)


def test_a_half_made_data_folder_is_made_anew(home):
    name = f"postgres-{postgres.major_version(postgres.find_binaries())}"
    partial = home / f"{name}.partial"
    partial.mkdir(parents=True)
    (partial / "PG_VERSION").write_text("half")
    with servers.owned(dict(os.environ), quiet=True):
        assert server_version() >= postgres.OLDEST_MAJOR
    assert not partial.exists()


def test_a_server_killed_in_the_middle_recovers(home):
    child = postgres.start(dict(os.environ))
    with psycopg.connect(postgres._conninfo(addresses.DATABASE_NAME), autocommit=True) as connection:
        connection.execute("create table kept (n int)")
    assert child.popen is not None
    child.popen.kill()
    child.popen.wait()
    again = postgres.start(dict(os.environ))
    try:
        with psycopg.connect(postgres._conninfo(addresses.DATABASE_NAME)) as connection:
            assert connection.execute("select count(*) from kept").fetchone() == (0,)
    finally:
        again.stop()


def test_without_wheels_the_installed_servers_are_used(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(postgres, "_DEBIAN", Path("/nowhere"))
    with pytest.raises(postgres.PostgresUnavailable, match="Set DATABASE_URL"):
        postgres.find_binaries()
    with pytest.raises(valkey.BrokerUnavailable, match="Set REDIS_URL"):
        valkey.find_binary()


def test_outside_servers_are_taken_from_the_environment(home, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://db.example/bourse")
    monkeypatch.setenv("REDIS_URL", "redis://cache.example:6379/0")
    with servers.owned(dict(os.environ), quiet=True) as children:
        assert children == []


def test_a_home_has_one_owner_and_others_use_what_it_started(home):
    with servers.owned(dict(os.environ), quiet=True):
        with pytest.raises(servers.HomeBusy, match="already runs"), servers.owned(dict(os.environ), quiet=True):
            pass
        with servers.available(dict(os.environ)):
            assert postgres.accepts_connections()
    assert not postgres.accepts_connections()


def test_what_a_killed_run_left_behind_is_stopped_and_a_reused_pid_is_not(tmp_path):
    notes, log = tmp_path / "processes.json", tmp_path / "log"
    ours = Child(name="worker", command=["sleep", "60"], log=log, env=dict(os.environ))
    stranger = Child(name="web", command=["sleep", "60"], log=log, env=dict(os.environ))
    ours.start()
    stranger.start()
    try:
        note_children(notes, [ours, stranger])
        assert stranger.popen is not None
        ticks = start_ticks(stranger.popen.pid)
        notes.write_text(notes.read_text().replace(f'"{ticks}"}}]', '"1"}]'))
        assert stop_leftovers(notes) == ["worker"]
        assert not ours.is_running
        assert stranger.is_running
    finally:
        ours.stop()
        stranger.stop()


def test_a_home_with_a_long_path_still_gets_a_socket(monkeypatch):
    monkeypatch.setenv("BOURSE_HOME", "/tmp/" + "long-folder-name/" * 10)
    assert len(str(addresses.postgres_socket_folder() / ".s.PGSQL.5432.lock")) <= 107


def test_the_secret_key_is_made_once_and_kept_private(home):
    first = addresses.local_secret_key()
    assert addresses.local_secret_key() == first
    assert (home / "secret_key").stat().st_mode & 0o077 == 0


def test_production_refuses_to_start_without_its_secret():
    env = {name: value for name, value in os.environ.items() if name not in ("BOURSE_ENV", "SECRET_KEY")}
    answer = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"], env=env, capture_output=True, text=True, check=False
    )
    assert answer.returncode != 0
    assert "SECRET_KEY" in answer.stderr


def test_the_test_payment_server_keeps_its_port_and_secrets_and_moves_when_the_port_is_taken(home):
    addresses.private_folder(home)
    child = gateway.start(dict(os.environ))
    first = addresses.fake_stripe()
    child.stop()
    assert first is not None
    assert (home / "fake_stripe.json").stat().st_mode & 0o077 == 0
    child = gateway.start(dict(os.environ))
    child.stop()
    assert addresses.fake_stripe() == first
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first.port))
        taken.listen()
        child = gateway.start(dict(os.environ))
        child.stop()
    moved = addresses.fake_stripe()
    assert moved is not None
    assert moved.port != first.port
    assert (moved.api_key, moved.webhook_secret) == (first.api_key, first.webhook_secret)
    with pytest.raises(gateway.GatewayUnavailable):
        gateway.send_messages_to("http://localhost:1/")
