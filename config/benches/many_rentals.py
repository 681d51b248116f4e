"""Many running rentals for a bench: one comes about as all do, the others are copies of its rows under other keys."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.core.management import call_command
from django.db import connection

from billing import ledger
from billing.accounts import open_account
from billing.ledger import Line
from billing.models import Account
from billing.tax.record import decide_for
from catalog.models import Gpu
from fx.models import Rate
from marketplace.listings import Offered, list_server
from marketplace.models import BeatSpan, HeldHours, Provider, Rental, UpSpan
from marketplace.orders.instruction import Instruction
from marketplace.orders.place import place_order
from marketplace.servers import Machine, beat, enrol_server, verify_server
from users.models import Organisation

READY_AT = datetime(2026, 11, 29, 0, 4, 30, tzinfo=UTC)
_HOURS = 48
_FILLED_AT = READY_AT - timedelta(minutes=2)
_PROVIDERS, _RENTALS_PER_RENTER, _RENTALS_PER_SERVER = 1000, 5, 8
_PRICE = Decimal("2.88")
_WALLET_MICROS = 10**10
# Copies get numbers of their own, far above the first one's.
_FAR = 10**9
_Copies = tuple[str, object, int, dict[str, str]]


def make_rentals(size: int) -> None:
    """Write `size` rentals that run since READY_AT: five to a wallet in EUR, eight to a server, a thousand providers."""
    call_command("load_catalogue", verbosity=0)
    first = _first_rental()
    with connection.cursor() as cursor:
        for table, key, count, values in (*_owners(first, size - 1), *_rentals(first, size - 1)):
            changed = ", ".join(f"'{name}', {value}" for name, value in values.items())
            key_column = next(iter(values))
            cursor.execute(
                f"INSERT INTO {table} SELECT row.* FROM {table} AS one, generate_series(1, {count}) AS n,"  # our own names
                f" jsonb_populate_record(one, jsonb_build_object({changed})) AS row WHERE one.{key_column} = '{key}'"
            )
            if table == "billing_account":
                for statement in _FUNDS:
                    cursor.execute(statement)
        cursor.execute(_HOLDS)


def _first_rental() -> Rental:
    usd = Rate(currency="USD", day=READY_AT.date(), units_per_eur=Decimal("1.1476"), origin="sample")
    usd.stored_at = _FILLED_AT
    usd.save()
    gpu_id = Gpu.objects.get(slug="h100-sxm").pk
    _list_a_server(gpu_id)
    renter = Organisation.objects.create(name="bench renter", kind="renter", type="business", country="NL")
    decide_for(organisation=renter, now=_FILLED_AT)
    wallet = open_account(kind=Account.Kind.WALLET, currency="EUR", owner_id=renter.pk)
    gateway = open_account(kind=Account.Kind.GATEWAY, currency="EUR")
    lines = [Line(gateway.pk, -_WALLET_MICROS), Line(wallet.pk, _WALLET_MICROS)]
    ledger.post(key="fund", kind="topup", lines=lines, effective_at=_FILLED_AT)
    instruction = Instruction(
        gpu_id=gpu_id, gpu_count=1, hours=_HOURS, limit=_PRICE, currency="EUR", confirm_price=True
    )
    place_order(organisation_id=renter.pk, instruction=instruction, now=_FILLED_AT)
    paid_until = READY_AT + timedelta(hours=_HOURS)
    Rental.objects.update(state=Rental.State.RUNNING, ready_at=READY_AT, paid_until=paid_until)
    BeatSpan.objects.update(last_beat_at=paid_until)
    UpSpan.objects.create(started_at=_FILLED_AT, last_seen_at=paid_until)
    return Rental.objects.select_related("server").get()


def _list_a_server(gpu_id: int) -> None:
    seller = Organisation.objects.create(name="bench seller", kind="provider", type="business", country="NL")
    provider = Provider.objects.create(
        organisation=seller, state="approved", approved_at=_FILLED_AT, created_at=_FILLED_AT
    )
    machine = Machine(
        name="bench",
        gpu_id=gpu_id,
        device_uuids=["GPU-bench"],
        country="NL",
        vcpus=64,
        ram_gb=512,
        disk_gb=2000,
        network_mbit_s=10_000,
        interconnect="nvlink",
    )
    server = enrol_server(provider=provider, machine=machine, now=_FILLED_AT)
    verify_server(server_id=server.pk, now=_FILLED_AT)
    beat(server_id=server.pk, now=_FILLED_AT)
    list_server(server=server, offered=Offered(price=_PRICE), now=_FILLED_AT)


def _owners(first: Rental, count: int) -> Iterator[_Copies]:
    """Yield table, the row that is copied, how many copies, and what is another in the n-th: its key, then the rest."""
    renters, servers = -(-count // _RENTALS_PER_RENTER), -(-count // _RENTALS_PER_SERVER)
    seller_id, listing = first.server.provider_id, first.listing_id
    sellers = f"{2 * _FAR} + n %% {_PROVIDERS}".replace("%%", "%")
    yield "users_organisation", first.organisation_id, renters, {"id": f"{_FAR} + n", "name": "'renter ' || n"}
    yield "users_organisation", seller_id, _PROVIDERS, {"id": f"{2 * _FAR - 1} + n", "name": "'seller ' || n"}
    yield "marketplace_provider", seller_id, _PROVIDERS, {"organisation_id": f"{2 * _FAR - 1} + n"}
    owner = {"owner_id": f"{_FAR} + n", "posted_micros": "0", "held_micros": "0"}
    yield "billing_account", first.wallet_id, renters, {"id": f"{_FAR} + n", **owner}
    owner = {"organisation_id": f"{_FAR} + n"}
    yield "billing_taxdecision", _id_of("billing_taxdecision"), renters, {"id": f"{_FAR} + n", **owner}
    machine = {"provider_id": sellers, "name": "'server ' || n"}
    yield "marketplace_server", first.server_id, servers, {"id": _key(1), **machine}
    yield "marketplace_beatspan", BeatSpan.objects.get().pk, servers, {"id": f"{_FAR} + n", "server_id": _key(1)}
    yield "marketplace_listing", listing, servers, {"id": _key(2), "server_id": _key(1), "priority": f"{_FAR} + n"}


def _rentals(first: Rental, count: int) -> Iterator[_Copies]:
    renter = f"{_FAR} + 1 + (n - 1) / {_RENTALS_PER_RENTER}"
    place = f"1 + (n - 1) / {_RENTALS_PER_SERVER}"
    who = {"organisation_id": renter, "wallet_id": renter}
    where = {"listing_id": _key(2, place), "gpu_id": str(first.gpu_id)}
    number = f"{_FAR} + n"
    yield "marketplace_order", first.order_id, count, {"id": _key(3), "sequence": number, **who}
    fill = {"order_id": _key(3), "sequence": f"{2 * _FAR} + n", **where}
    yield "marketplace_fill", first.fill_id, count, {"id": _key(4), **fill}
    nothing = dict.fromkeys(("placed_micros", "remaining_micros", "captured_micros", "released_micros"), "0")
    hold = {"id": number, "account_id": renter, "key": "'bench ' || n", **nothing}
    yield "billing_hold", first.hold_id, count, hold
    rental = {"fill_id": _key(4), "order_id": _key(3), "server_id": _key(1, place), "hold_id": number, **who, **where}
    yield "marketplace_rental", first.pk, count, {"id": _key(5), **rental}
    held = HeldHours.objects.get()
    yield "marketplace_heldhours", held.pk, count, {"id": number, "rental_id": _key(5)}


def _key(kind: int, number: str = "n") -> str:
    """Return SQL for the n-th id of a kind, in the order of their numbers as ids made in time are."""
    return f"'01a22d9a-{kind:04d}-7000-8000-' || lpad(to_hex({number}), 12, '0')"


def _id_of(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT min(id) FROM {table}")  # our own names
        return int(cursor.fetchone()[0])


_FUNDS = (
    f"""INSERT INTO billing_journalentry (key, content_sha256, kind, reference_type, reference_id, description, effective_at, created_at)
        SELECT 'fund ' || id, '', 'topup', '', '', '', opened_at, opened_at FROM billing_account WHERE id > {_FAR}""",
    f"""INSERT INTO billing_posting (entry_id, account_id, currency, amount_micros)
        SELECT entry.id, line.account, 'EUR', line.amount
          FROM billing_account AS wallet
          JOIN billing_journalentry AS entry ON entry.key = 'fund ' || wallet.id
          JOIN billing_account AS gateway ON gateway.kind = 'gateway' AND gateway.currency = 'EUR',
               LATERAL (VALUES (wallet.id, {_WALLET_MICROS}), (gateway.id, -{_WALLET_MICROS})) AS line (account, amount)
         WHERE wallet.id > {_FAR}""",
)
_HOLDS = f"""
    INSERT INTO billing_holdmovement (hold_id, key, content_sha256, kind, amount_micros, created_at)
    SELECT hold.id, 'placed:' || hold.id, '', 'placed', one.amount_micros, hold.created_at
      FROM billing_hold AS hold, (SELECT amount_micros FROM billing_holdmovement WHERE kind = 'placed' LIMIT 1) AS one
     WHERE hold.id > {_FAR}
"""  # our own numbers
