"""Where the local site keeps its state, and how its embedded servers are reached.

Everything lies in one folder, `BOURSE_HOME` (default `.bourse/` in the project). Sockets are unix sockets in its
`run/`; a path too long for a socket (the kernel allows about 107 bytes) moves to a private folder in the system's
temporary one, with a name derived from the home, so that every process computes the same place.
"""

import hashlib
import json
import os
import secrets
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

PROJECT = Path(__file__).resolve().parent.parent.parent
DATABASE_NAME = "bourse"
DATABASE_USER = "bourse"
_LONGEST_SOCKET_PATH = 100


def home() -> Path:
    """Return the state folder; it may not exist yet."""
    return Path(os.environ.get("BOURSE_HOME") or PROJECT / ".bourse").expanduser().resolve()


def run_folder() -> Path:
    """Return the folder of the sockets."""
    inside = home() / "run"
    if len(os.fsencode(inside / "pg" / ".s.PGSQL.5432.lock")) <= _LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(home())).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"bourse-{os.geteuid()}-{digest}"


def postgres_socket_folder() -> Path:
    """Return the folder in which PostgreSQL puts its socket."""
    return run_folder() / "pg"


def valkey_socket() -> Path:
    """Return the path of the broker's socket."""
    return run_folder() / "valkey.sock"


def database_url() -> str:
    """Return the embedded database's address in the form Django's settings take."""
    return f"postgres://{DATABASE_USER}@/{postgres_socket_folder()}/{DATABASE_NAME}"


def redis_url() -> str:
    """Return the embedded broker's address in redis-py's form."""
    return f"unix://{valkey_socket()}?db=0"


def broker_url(redis_address: str) -> str:
    """Return the same server in the form Celery takes.

    >>> broker_url("unix:///srv/run/valkey.sock?db=0")
    'redis+socket:///srv/run/valkey.sock?virtual_host=0'
    >>> broker_url("redis://cache:6379/0")
    'redis://cache:6379/0'
    """
    parts = urlsplit(redis_address)
    if parts.scheme != "unix":
        return redis_address
    number = parts.query.removeprefix("db=") or "0"
    return f"redis+socket://{parts.path}?virtual_host={number}"


@dataclass(frozen=True, kw_only=True)
class FakeStripe:
    """How the demo's test gateway is reached: its port and secrets, made once so that its links stay good."""

    port: int
    api_key: str
    webhook_secret: str

    @property
    def url(self) -> str:
        """Its origin, for the library and for browsers alike."""
        return f"http://localhost:{self.port}"


def fake_stripe() -> FakeStripe | None:
    """Return this home's test gateway; None before the first demo."""
    try:
        return FakeStripe(**json.loads(_fake_stripe_note().read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def remember_fake_stripe(*, port: int) -> FakeStripe:
    """Note the port of this home's test gateway, keeping its secrets or making them; readable by the owner only."""
    before = fake_stripe()
    fake = FakeStripe(
        port=port,
        api_key=before.api_key if before else f"sk_test_{secrets.token_hex(16)}",
        webhook_secret=before.webhook_secret if before else f"whsec_{secrets.token_hex(24)}",
    )
    fresh = _fake_stripe_note().with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(asdict(fake)))
    fresh.replace(_fake_stripe_note())
    return fake


def fake_stripe_state() -> Path:
    """Return the file in which the test gateway keeps its payments."""
    return home() / "fake_stripe.sqlite"


def _fake_stripe_note() -> Path:
    return home() / "fake_stripe.json"


def static_root() -> Path:
    """Return where the local site collects its static files."""
    return home() / "static"


def local_secret_key() -> str:
    """Return this home's signing key, made once and readable by its owner only."""
    path = home() / "secret_key"
    if not path.exists():
        private_folder(home())
        fresh = path.with_name(f"secret_key.{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        try:
            os.link(fresh, path)  # the first process wins, all read the same key
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text()


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner may enter; parents keep the modes they have."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path
