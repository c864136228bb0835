from datetime import UTC, datetime, timedelta

import pytest

from arena.guard.limits import Addresses

NOON = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)


def at(moment: datetime = NOON, secret: str = "secret") -> Addresses:
    return Addresses(secret, lambda: moment)


def test_an_address_has_another_hash_each_day_and_for_each_secret() -> None:
    today = at().pseudonym("192.0.2.7")
    assert at(NOON + timedelta(hours=11)).pseudonym("192.0.2.7") == today
    assert at(NOON + timedelta(days=1)).pseudonym("192.0.2.7") != today
    assert at(secret="other").pseudonym("192.0.2.7") != today
    assert at().pseudonym("192.0.2.8") != today
    assert "192" not in today


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("not an address", "neither is this", False),
    ],
)
def test_a_network_of_64_bits_is_one_visitor_s(one: str, other: str, alike: bool) -> None:
    assert (at().pseudonym(one) == at().pseudonym(other)) is alike


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:2:2::1", False),
    ],
)
def test_a_network_of_48_bits_is_one_household_s(one: str, other: str, alike: bool) -> None:
    assert (at().network_pseudonym(one) == at().network_pseudonym(other)) is alike
    assert at().network_pseudonym(one) != at().pseudonym(one)


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", "not an address"])
def test_only_an_address_of_ipv6_has_a_larger_network(address: str) -> None:
    assert at().network_pseudonym(address) is None
