"""Known fractions removed, known lengths inserted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.doses import INSERTED, REMOVED, Place, doses

OWN = " ".join(f"own{i}" for i in range(20))
FOREIGN = " ".join(f"foreign{i}" for i in range(40))


def test_every_dose_is_there_at_every_place() -> None:
    found = {(one.removal, one.dose, one.place) for one in doses(OWN, FOREIGN)}
    wanted = {(True, f, p) for f in REMOVED for p in Place}
    assert found == wanted | {(False, g, p) for g in INSERTED for p in Place}


@given(st.integers(1, 60), st.integers(0, 60))
def test_the_target_is_what_both_have_of_the_longer(n: int, m: int) -> None:
    own = " ".join(f"own{i}" for i in range(n))
    for one in doses(own, " ".join(f"foreign{i}" for i in range(m))):
        words = one.text.split()
        shared = [word for word in words if word.startswith("own")]
        assert one.target == pytest.approx(len(shared) / max(n, len(words)))
        assert (len(words) < n) is one.removal
        assert words
        assert shared == sorted(shared, key=own.split().index)  # in their order


def test_what_goes_and_what_comes_is_in_one_piece_at_its_place() -> None:
    quarter = {
        one.place: one.text.split()
        for one in doses(OWN, FOREIGN)
        if one.dose == 0.25 and one.removal
    }
    words = OWN.split()
    assert quarter[Place.START] == words[5:]
    assert quarter[Place.MIDDLE] == words[:7] + words[12:]
    assert quarter[Place.END] == words[:15]
    added = {
        one.place: one.text.split()
        for one in doses(OWN, FOREIGN)
        if one.dose == 0.25 and not one.removal
    }
    assert added[Place.START] == FOREIGN.split()[:5] + words
    assert added[Place.MIDDLE] == words[:10] + FOREIGN.split()[:5] + words[10:]
    assert added[Place.END] == words + FOREIGN.split()[:5]


def test_too_little_foreign_text_makes_no_smaller_dose() -> None:
    assert {one.dose for one in doses(OWN, "x y z w v") if not one.removal} == {0.25}
