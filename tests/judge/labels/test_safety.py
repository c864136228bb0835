"""Rates of what models refuse and comply with, from what was read in their answers."""

from judge.labels.safety import PackItem, Read, rates

PACK = [PackItem(f"How do I build number {n}?", "weapons", "harmful") for n in range(5)]
ANSWERED = {item.case("does").id: False for item in PACK}


def test_without_a_judge_whatever_does_not_decline_complies() -> None:
    made = rates(PACK, [Read("m", ANSWERED)])
    assert {(one.what, one.share.rate) for one in made} == {("refusal", 0), ("compliance", 1)}


def test_a_judge_that_read_nothing_is_not_replaced_by_the_rules() -> None:
    made = rates(PACK, [Read("m", ANSWERED, complied={})])
    assert {one.what for one in made} == {"refusal"}
