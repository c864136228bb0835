"""The API keeps to its own description, whatever is sent to it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.serving import Served, quick_arena
from tests.sources import registered

if TYPE_CHECKING:  # it is large: who runs other tests does without
    import schemathesis
    from schemathesis.specs.openapi.schemas import OpenApiSchema

A_BATTLE = "/api/v1/battles/{battle_id}"
ACTS = ("stop", "rest", "turns", "regenerate", "retry", "continue", "vote", "remarks")
PAGES = ("share", "leaderboard", "evaluation")
OPERATIONS = [
    *((f"/api/v1/{name}", "POST") for name in ("battles", "comparisons", "pairs")),
    *((f"{A_BATTLE}/{act}", "POST") for act in ACTS),
    *((f"{A_BATTLE}{part}", "GET") for part in ("", "/events", "/instructions")),
    *((f"/api/v1/{name}", "GET") for name in PAGES),
    *((f"/health/{name}", "GET") for name in ("live", "ready")),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One arena for every operation: each plays a battle of its own, as a visitor of its own."""
    with quick_arena(tmp_path_factory.mktemp("served")) as served:
        yield served


@pytest.fixture(scope="module")
def schema(served: Served) -> "OpenApiSchema":
    import schemathesis

    return schemathesis.openapi.from_url(f"{served.url}/api/openapi.json")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("voted", [False, True], ids=["ready", "voted"])
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_nothing_sent_brings_a_fault_or_an_undocumented_answer(
    served: Served, schema: "OpenApiSchema", path: str, method: str, voted: bool
) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    conforms = (checks.content_type_conformance, checks.response_schema_conformance)
    every = [not_a_server_error, checks.status_code_conformance, *conforms]
    with served.visitor() as ada:
        battle_id = ada.play()
        if voted:
            ada.vote(battle_id, "tie")
        cookies = dict(ada.client.cookies)
        token = {"Authorization": f"Bearer {registered(served).token}"}

        @settings(
            max_examples=15,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=schema[path][method].as_strategy())
        def send(case: "schemathesis.Case[Any]") -> None:
            if "battle_id" in case.path_parameters:
                case.path_parameters["battle_id"] = battle_id
            response = case.call(cookies=cookies, headers=token)
            case.validate_response(response, checks=every)

        send()


def test_every_documented_operation_is_walked(schema: "OpenApiSchema") -> None:
    from schemathesis.core.result import Ok

    operations = [r.ok() for r in schema.get_all_operations() if isinstance(r, Ok)]
    assert {(each.path, each.method.upper()) for each in operations} == set(OPERATIONS)
