"""Cases for a judge from the battles of an arena."""

from arena.store import single_battles
from arena.store.store import Store
from judge.case import Case, Message
from judge.tables.cases import NamedCase, each_response
from rating.errors import DataError


def battle_cases(store: Store) -> list[NamedCase]:
    """Give the arena's blind battles of one turn; raises `DataError` if there are none."""
    with store.reading() as session:
        battles = single_battles.answered(session)
    if not battles:
        msg = "No battle has two whole answers to one prompt: let people play first."
        raise DataError(msg)
    return [
        NamedCase(
            battle.battle_id,
            battle.prompt_id or case.prompt_id[:16],
            battle.model_a,
            battle.model_b,
            case,
        )
        for battle in battles
        for case in [Case((Message("user", battle.prompt),), battle.text_a, battle.text_b)]
    ]


def battle_responses(store: Store) -> list[NamedCase]:
    """Give each answer of the battles that `battle_cases` gives."""
    return list(each_response(battle_cases(store)))
