"""Which addresses may be told: no spelling and no name leads into a private network."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from users.webhooks.addresses import NotReachable, Target, UrlRefused, is_public, reachable_address, read_url
from users.webhooks.words import URL_REFUSALS

PRIVATE = [
    "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.9", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.7",
    "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:93.184.216.34", "::127.0.0.1", "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1",
    "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
]  # fmt: skip
PUBLIC = ["93.184.216.34", "1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888"]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_no_address_of_ours_or_of_nobody_is_public(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_ordinary_address_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "2130706433", "0x7f000001", "1.2.3.4 ", "1.2.3.4%1"])
def test_what_is_no_address_in_its_usual_spelling_is_not_public(text):
    assert not is_public(text)


@given(st.integers(0, 2**32 - 1))
def test_no_ipv4_address_becomes_public_by_being_carried_in_ipv6(number):
    carried = [
        IPv6Address(number),
        IPv6Address((0xFFFF << 32) + number),
        IPv6Address((0x64FF9B << 96) + number),
        IPv6Address((0x2002 << 112) + (number << 80)),
        IPv6Address((0x20010000 << 96) + number),
    ]
    assert not any(is_public(str(address)) for address in carried)


@given(
    st.sampled_from(["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "224.0.0.0/3"]),
    st.data(),
)
def test_no_address_inside_a_private_range_is_public(text, data):
    network = ip_network(text)
    number = data.draw(st.integers(int(network.network_address), int(network.broadcast_address)))
    assert not is_public(str(IPv4Address(number)))


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://example.com", "/"),
        ("https://hooks.example.com/a/b?c=d&e=%20", "/a/b?c=d&e=%20"),
        ("https://EXAMPLE.com:443/x", "/x"),
        ("HTTPS://xn--caf-dma.example.com/", "/"),
        ("https://a_b.example.com/?q", "/?q"),
    ],
)
def test_a_public_https_address_is_taken_apart(url, path):
    target = read_url(url)
    assert (target.scheme, target.port, target.path, target.is_loopback) == ("https", 443, path, False)
    assert target.host == target.host.lower()


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/", "not_https"),
        ("http://169.254.169.254/latest/meta-data/", "not_https"),
        ("ftp://example.com/", "not_https"),
        ("example.com/hook", "not_https"),
        ("", "not_a_url"),
        ("https://example.com:8443/", "other_port"),
        ("https://example.com:80/", "other_port"),
        ("https://example.com:0/", "other_port"),
        ("https://example.com:99999/", "not_a_url"),
        ("https://169.254.169.254/", "not_a_name"),
        ("https://127.0.0.1/", "not_a_name"),
        ("https://127.1/", "not_a_name"),
        ("https://2130706433/", "not_a_name"),
        ("https://0x7f.0.0.1/", "not_a_name"),
        ("https://0177.0.0.0x1/", "not_a_name"),
        ("https://example.0x7f/", "not_a_name"),
        ("https://[::1]/", "not_a_name"),
        ("https://[::ffff:127.0.0.1]/", "not_a_name"),
        ("https://[fe80::1%25eth0]/", "not_a_name"),
        ("https://[::1/", "not_a_url"),
        ("https:///nowhere", "not_a_name"),
        ("https://intranet/", "local_name"),
        ("https://printer/", "not_a_name"),
        ("https://localhost/", "local_name"),
        ("https://a.localhost/", "local_name"),
        ("https://db.internal/", "local_name"),
        ("https://nas.local/", "local_name"),
        ("https://example.com./", "not_a_name"),
        ("https://.example.com/", "not_a_name"),
        ("https://-a.example.com/", "not_a_name"),
        (f"https://{'a' * 64}.example.com/", "not_a_name"),
        ("https://user:word@example.com/", "has_credentials"),
        ("https://example.com@127.0.0.1/", "has_credentials"),
        ("https://:@example.com/", "has_credentials"),
        ("https://example.com/#part", "has_fragment"),
        ("https://example.com/#", "has_fragment"),
        ("https://example.com\\@127.0.0.1/", "not_a_url"),
        ("https://example.com/a b", "not_a_url"),
        ("https://example.com/\r\nHost: evil", "not_a_url"),
        ("https://ex\u00e4mple.com/", "not_a_url"),
        ("https://example\u3002com/", "not_a_url"),
        (f"https://example.com/{'x' * 500}", "too_long"),
    ],
)
def test_everything_else_is_refused_and_says_why(url, code):
    with pytest.raises(UrlRefused) as refusal:
        read_url(url)
    assert refusal.value.code == code


def test_every_reason_has_its_words():
    codes = {"too_long", "not_a_url", "has_credentials", "has_fragment", "not_https", "other_port", "local_name"}
    assert set(URL_REFUSALS) == codes | {"not_a_name"}


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused_and_never_an_error(text):
    try:
        target = read_url(f"https://{text}")
    except UrlRefused:
        return
    assert (target.scheme, target.port) == ("https", 443)
    assert "." in target.host


def test_loopback_is_let_through_by_the_switch_alone_and_nothing_else_is():
    assert read_url("http://127.0.0.1:8765/x", is_loopback_allowed=True) == Target(
        scheme="http", host="127.0.0.1", port=8765, path="/x", is_loopback=True
    )
    assert read_url("https://localhost/", is_loopback_allowed=True).port == 443
    for url in (
        "http://169.254.169.254/",
        "http://example.com/",
        "http://127.0.0.2/",
        "http://[::1]/",
        "ftp://localhost/",
    ):
        with pytest.raises(UrlRefused):
            read_url(url, is_loopback_allowed=True)


def target_named(host: str, **values) -> Target:
    return Target(**{"scheme": "https", "host": host, "port": 443, "path": "/", **values})


@pytest.mark.parametrize(
    "resolved",
    [[], ["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["2606:4700::1111", "::ffff:127.0.0.1"], ["fe80::1%eth0"]],
)
def test_one_address_that_is_not_public_spoils_a_name(resolved):
    with pytest.raises(NotReachable):
        reachable_address(target_named("example.com"), resolved)


def test_of_several_public_addresses_the_first_of_ipv4_is_taken():
    several = ["2606:4700::1111", "93.184.216.34", "1.1.1.1"]
    assert reachable_address(target_named("example.com"), several) == "93.184.216.34"
    assert reachable_address(target_named("example.com"), several[:1]) == "2606:4700::1111"


def test_the_loopback_exception_leads_to_loopback_alone():
    here = target_named("localhost", is_loopback=True)
    assert reachable_address(here, ["::1", "127.0.0.1"]) == "127.0.0.1"
    for elsewhere in (["93.184.216.34"], ["10.0.0.1"], ["127.0.0.1", "10.0.0.1"]):
        with pytest.raises(NotReachable):
            reachable_address(here, elsewhere)
