from datetime import UTC, datetime, timedelta

import pytest

from arena.guard.addresses import Addresses

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
