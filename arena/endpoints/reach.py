"""Every model of a roster, wherever it answers: over HTTP, from a recording, or embedded."""

from collections.abc import Mapping

from arena.domain.model import Roster
from arena.endpoints.budgets import DEFAULT_BUDGETS, Budgets
from arena.endpoints.client import Endpoints, Timeouts
from arena.endpoints.pocket import PocketTransport
from arena.endpoints.recorded import RecordedTransport, Recording


def reach(
    roster: Roster,
    keys: Mapping[str, str],
    recordings: Mapping[str, Recording],
    pocket: PocketTransport,
    timeouts: Timeouts | None = None,
    budgets: Budgets = DEFAULT_BUDGETS,
) -> Endpoints:
    """Make the client that reaches every model of a roster.

    Parameters
    ----------
    keys : mapping
        API keys by the names that the roster gives them.
    recordings : mapping
        By `Model.id`.
    """
    paces = {model.id: model.characters_per_s for model in roster}
    return Endpoints(
        keys,
        transports={
            "pocket://": pocket,
            "recorded://": RecordedTransport(recordings, paces),
        },
        timeouts=timeouts or Timeouts(),
        budgets=budgets,
    )
