"""The demo's market: the same in every demo, built once, by the exchange's own functions, and provable afterwards."""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from statistics import median

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import authenticate

from billing.models import Account
from catalog.models import BestAsk, Gpu
from catalog.sources.reference import REFERENCE_FILE
from marketplace.book import wallet_state
from marketplace.models import BeatSpan, Fill, Listing, ListingTerms, Order, Provider, Rental, RentalEvent, Server
from marketplace.providers.missing import Next
from marketplace.providers.onboarding import onboarding_of
from marketplace.queries.market import markets
from marketplace.sample_market import build
from marketplace.sample_market.build import ENDS_EARLIER, build_sample_market
from marketplace.sample_market.fleet import play_fleet
from marketplace.sample_market.history import play
from marketplace.sample_market.people import (
    CURRENCY,
    FUNDS,
    fund_sample_renters,
    open_sample_login,
    open_sample_people,
    sample_renters,
)
from marketplace.sample_market.plan import HISTORY, GiveBack, Rest, Trade, plan_book
from marketplace.sample_market.rows import reference_gpus, sample_books, sample_providers, sample_servers
from tests.billing.conftest import wallet_of
from tests.factories import make_gpu
from tests.marketplace.conftest import NOW
from users.api_keys import key_of
from users.models import Organisation

FOUR = ("h100-sxm", "b300", "rtx-4090", "gh200-96gb")
STARTED_WITHIN = timedelta(minutes=10)


@pytest.fixture
def people(db) -> None:
    """The GPUs, and the sample people with their money."""
    for slug in sample_books():
        make_gpu(slug=slug)
    open_sample_people(now=NOW)
    for renter in sample_renters():
        wallet_of(renter.organisation.name, currency=CURRENCY, units=int(FUNDS))


@pytest.fixture
def four_books(people, monkeypatch) -> None:
    """Only four of the books are there to be built: enough where it does not matter which."""
    monkeypatch.setattr(build, "sample_books", lambda: {slug: sample_books()[slug] for slug in FOUR})


@pytest.fixture
def market(people) -> None:
    """The market as it is when the demo opens."""
    build_sample_market(now=NOW)
    play_fleet(now=NOW)


def counts() -> dict[str, int]:
    kinds = (Organisation, Provider, Server, Listing, Order, Fill, Rental, RentalEvent, BeatSpan)
    return {kind.__name__: kind.objects.count() for kind in kinds}


def list_prices(gpu: str) -> tuple[list[Decimal], list[Decimal]]:
    """Return the dated list prices of a GPU in the repository: of every market, and on demand."""
    with REFERENCE_FILE.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["gpu"] == gpu]
    prices = [(row["market"], Decimal(row["price_usd_per_hour"]) / Decimal(row["gpu_count"])) for row in rows]
    return [price for _, price in prices], [price for kind, price in prices if kind == "on_demand"]


def test_the_files_hold_forty_servers_of_twelve_providers_over_twenty_gpus():
    servers = sample_servers()
    assert (len(servers), len(sample_books()), len(sample_providers())) == (40, 20, 12)
    assert {server.provider for server in servers} == {provider.slug for provider in sample_providers()}
    assert all(provider.name.endswith("(sample)") for provider in sample_providers())
    assert Counter(server.min_gpus for server in servers)[1] > 30
    assert len({server.max_hours for server in servers}) >= 5
    assert {4, 8} <= {server.devices for server in servers}
    uuids = [uuid for server in servers for uuid in server.device_uuids]
    assert len(set(uuids)) == len(uuids)


def test_reference_prices_are_the_best_asks_of_the_files(shared_data):
    with (shared_data / "reference_prices.csv").open(encoding="utf-8", newline="") as lines:
        wanted = {row["slug"]: Decimal(row["price_usd_per_gpu_hour"]) for row in csv.DictReader(lines)}
    best = {gpu: servers[0].price_usd_per_gpu_hour for gpu, servers in sample_books().items()}
    assert reference_gpus() == wanted.keys()
    assert {gpu: best[gpu] for gpu in wanted} == wanted


@pytest.mark.parametrize("gpu", sorted(sample_books().keys() - reference_gpus()))
def test_other_prices_lie_among_the_dated_list_prices_of_the_repository(gpu):
    every, on_demand = list_prices(gpu)
    assert min(every) <= sample_books()[gpu][0].price_usd_per_gpu_hour <= median(on_demand)


def test_the_best_offer_comes_first_and_can_be_told_from_the_others_by_its_country():
    for servers in sample_books().values():
        best, *others = servers
        assert best.min_gpus == 1
        assert all(other.price_usd_per_gpu_hour > best.price_usd_per_gpu_hour for other in others)
        assert best.country not in {other.country for other in others}


def test_the_flaky_server_is_the_dearest_of_a_book_with_others():
    (gpu,) = {server.gpu for server in sample_servers() if server.is_flaky}
    prices = {server.price_usd_per_gpu_hour: server for server in sample_books()[gpu]}
    assert len(prices) == 3
    assert prices[max(prices)].is_flaky


@pytest.mark.parametrize("gpu", sample_books())
def test_a_plan_is_the_same_for_the_same_seed_and_goes_forward_in_time(gpu):
    plan = plan_book(sample_books()[gpu])
    assert plan == plan_book(sample_books()[gpu])
    assert plan != plan_book(sample_books()[gpu], seed="another")
    assert all(later.before <= earlier.before for earlier, later in pairwise(plan.steps))
    assert all(timedelta(0) < step.before < HISTORY for step in plan.steps)
    times = [step.before for step in plan.steps if isinstance(step, Trade)]
    assert max(times) > timedelta(days=1)
    assert min(times) < timedelta(days=1)
    assert all(bid.limit < plan.servers[0].price_usd_per_gpu_hour for bid in plan.bids)
    assert len(set(plan.bids)) == len(plan.bids)


@pytest.mark.parametrize("gpu", sample_books())
def test_in_a_plan_no_trade_begins_before_the_last_one_is_given_back(gpu):
    is_out, taken_before = False, HISTORY
    for step in plan_book(sample_books()[gpu]).steps:
        if isinstance(step, Trade):
            assert not is_out
            is_out, taken_before = True, step.before
        elif isinstance(step, GiveBack):
            assert not is_out or taken_before - step.before < STARTED_WITHIN
            is_out = False
    assert not is_out


def test_the_bids_of_a_renter_fit_its_funds():
    needed: dict[int, Decimal] = defaultdict(Decimal)
    for servers in sample_books().values():
        for bid in plan_book(servers).bids:
            needed[bid.renter] += bid.limit * bid.gpu_count * bid.server_count * (bid.hours or 1) * Decimal("1.21")
    assert max(needed.values()) < FUNDS * Decimal("0.8")


def test_on_the_first_day_the_best_ask_of_each_reference_gpu_is_its_price(market):
    best = dict(BestAsk.objects.values_list("gpu__slug", "price_usd_per_gpu_hour"))
    assert best == {gpu: servers[0].price_usd_per_gpu_hour for gpu, servers in sample_books().items()}
    assert Server.objects.filter(is_sample=True).count() == 40


def test_every_market_has_a_past_and_bids_that_wait(market):
    for each in markets(now=NOW):
        assert each.last_price is not None, each.gpu
        assert each.change_24h is not None
        assert each.volume_24h_gpu_hours > 0
        assert each.best_bid is not None
        assert each.best_ask is not None
        assert each.best_bid < each.best_ask
    assert {each.change_24h > 0 for each in markets(now=NOW) if each.change_24h} == {True, False}
    assert Fill.objects.count() >= 80
    assert Fill.objects.filter(filled_at__gt=NOW).count() == 0


def test_every_planned_trade_and_bid_became_what_it_was_planned_to_be(market):
    plans = [plan_book(servers) for servers in sample_books().values()]
    taken = {
        (plan.gpu, step.gpu_count, step.limit, NOW - ENDS_EARLIER.get(plan.gpu, timedelta(0)) - step.before)
        for plan in plans
        for step in plan.steps
        if isinstance(step, Trade)
    }
    fills = set(Fill.objects.values_list("gpu__slug", "gpu_count", "price_usd_per_gpu_hour", "filled_at"))
    assert taken < fills
    waited = [step for plan in plans for step in plan.steps if isinstance(step, Rest) and step.bid not in plan.bids]
    assert len(fills) == len(taken) + len(waited)
    assert waited
    assert Order.objects.filter(state=Order.State.FILLED).count() == len(fills)
    assert Order.objects.filter(state__in=Order.RESTING).count() == sum(len(plan.bids) for plan in plans)
    assert not Order.objects.filter(state__in=[Order.State.CANCELLED, Order.State.EXPIRED]).exists()
    assert not Fill.objects.filter(listing__server__name="flaky").exists()


def test_all_devices_are_free_again_nobody_failed_and_nothing_was_charged(market):
    assert set(Rental.objects.values_list("state", flat=True)) == {Rental.State.ENDED}
    assert not Rental.objects.filter(ready_at__isnull=False).exists()
    listed = dict(BestAsk.objects.values_list("gpu__slug", "devices_available"))
    assert listed == {
        gpu: sum(server.devices for server in servers if server.min_gpus == 1)
        for gpu, servers in sample_books().items()
    }
    wallets = Account.objects.filter(kind=Account.Kind.WALLET)
    assert {wallet.posted_micros for wallet in wallets} == {int(FUNDS) * 1_000_000}


def test_a_second_start_adds_nothing(four_books):
    build_sample_market(now=NOW)
    play_fleet(now=NOW)
    before = counts()
    open_sample_people(now=NOW + timedelta(seconds=30))
    assert build_sample_market(now=NOW + timedelta(seconds=30)) == 0
    play_fleet(now=NOW + timedelta(seconds=30))
    assert counts() == before


def test_a_build_that_was_cut_off_is_completed_by_the_next(four_books, monkeypatch):
    with monkeypatch.context() as cut:
        cut.setattr(build, "plan_book", cut_at(3, plan_book))
        with pytest.raises(KeyboardInterrupt):
            build_sample_market(now=NOW)
    assert build_sample_market(now=NOW + timedelta(minutes=3)) == 2
    play_fleet(now=NOW + timedelta(minutes=3))
    assert Server.objects.count() == sum(len(sample_books()[slug]) for slug in FOUR)
    assert BestAsk.objects.count() == 4


def cut_at(call: int, function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that is killed at its n-th call."""
    calls = iter(range(1, 100))

    def cut(*values, **named):
        if next(calls) == call:
            raise KeyboardInterrupt
        return function(*values, **named)

    return cut


def test_a_book_that_was_cut_off_in_its_middle_is_not_there_at_all(four_books, monkeypatch):
    monkeypatch.setattr(build, "play", cut_at(1, play))
    with pytest.raises(KeyboardInterrupt):
        build_sample_market(now=NOW)
    assert counts()["Server"] == 0


def test_without_money_for_the_renters_prices_move_and_nothing_is_traded(four_books):
    build_sample_market(now=NOW, have_renters_money=False)
    play_fleet(now=NOW)
    assert BestAsk.objects.count() == 4
    assert ListingTerms.objects.count() > Listing.objects.count()
    assert not Order.objects.exists()


def test_without_the_fleet_no_server_was_heard_of_in_the_last_minute(four_books):
    build_sample_market(now=NOW)
    assert not [server for server in Server.objects.all() if server.is_live(NOW)]


def test_a_visitor_signs_in_as_the_first_provider_and_its_key_works(people):
    login = open_sample_login(password="a long password", now=NOW)
    user = authenticate(email=login.email, password="a long password")
    assert login.email == "provider@demo.example"
    assert EmailAddress.objects.get(user=user).verified
    key = key_of(login.api_key, now=NOW)
    assert key.scopes == ["read", "provider"]
    assert key.organisation.name == sample_providers()[0].name
    again = open_sample_login(password="another password", now=NOW)
    assert again.api_key != login.api_key
    assert Provider.objects.count() == 12


def test_the_sample_renters_pay_their_money_in_at_the_gateway_once(fake_stripe, db, settings):
    settings.TOP_UP_TIERS = [(0, 0, 100_000, 500_000)]
    now = datetime.now(UTC)  # the gateway has a clock of its own
    open_sample_people(now=now)
    for _run in range(2):
        fund_sample_renters(now=now)
    for renter in sample_renters():
        assert wallet_state(renter.organisation_id, CURRENCY).available_micros == int(FUNDS) * 1_000_000


def test_a_gpu_that_is_not_in_the_catalogue_is_an_error_by_its_name(people):
    Gpu.objects.filter(slug="b300").delete()
    with pytest.raises(KeyError, match="b300"):
        build_sample_market(now=NOW)


def test_sample_providers_have_applied_like_real_ones_and_nothing_of_it_is_missing(db):
    open_sample_people(now=NOW)
    for provider in Provider.objects.filter(is_sample=True).select_related("organisation"):
        onboarding = onboarding_of(provider.organisation, now=NOW)
        assert (onboarding.missing, onboarding.provider.state) == ((), "approved")
        assert Next.TERMS not in onboarding.steps
        assert [review.step for review in onboarding.reviews] == ["approved", "submitted"]
    before = counts()
    open_sample_people(now=NOW)
    assert counts() == before
