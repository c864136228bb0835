"""Judges at work: models at endpoints, journals in databases, and cases from battles; no web."""

import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from arena.domain.answer import Completion, FailureClass
from arena.domain.model import Model
from arena.domain.vote import RULES, Tagger
from arena.endpoints.client import Endpoints, reach
from arena.endpoints.offline import PocketTransport, load_recordings
from arena.endpoints.sse import DEFAULT_BUDGETS, Budgets
from arena.errors import EndpointError
from arena.store import single_battles
from arena.store.judgements import StoredJournal, judging_seed
from arena.store.store import Store
from arena.store.tables import fingerprint
from judge import errors
from judge.budget import Price
from judge.case import Case, Message
from judge.completion import FILTERED, Parameters, Reply, Request, TokenLogprob
from judge.labels.asked import version_of
from judge.tables.cases import NamedCase, each_response
from rating.errors import DataError

__all__ = [
    "EndpointJudge",
    "ModelEndpoint",
    "battle_cases",
    "battle_responses",
    "endpoint",
    "journal",
    "journal_of",
    "revision_of",
    "tagger_of",
]

KEY = "API_KEY"

AS_CALL: Mapping[FailureClass, errors.FailureClass] = {
    FailureClass.AUTH: errors.FailureClass.DENIED,
    FailureClass.NOT_FOUND: errors.FailureClass.DENIED,
    FailureClass.BAD_REQUEST: errors.FailureClass.REJECTED,
    FailureClass.CONTEXT_LENGTH: errors.FailureClass.REJECTED,
    FailureClass.OVERLOADED: errors.FailureClass.OVERLOADED,
    FailureClass.INTERNAL: errors.FailureClass.OVERLOADED,
    FailureClass.DROPPED: errors.FailureClass.TRANSPORT,
    FailureClass.MALFORMED: errors.FailureClass.TRANSPORT,
    FailureClass.TIMEOUT: errors.FailureClass.TRANSPORT,
    FailureClass.UNREACHABLE: errors.FailureClass.TRANSPORT,
    FailureClass.RATE_LIMIT: errors.FailureClass.RATE_LIMIT,
    FailureClass.CONTENT_FILTER: errors.FailureClass.REJECTED,
}
"""How the judge takes what went wrong at an endpoint; a verdict that was filtered is a reply."""


class EndpointJudge:
    """Asks one model, once. The request's parameters stand before the model's own decoding."""

    def __init__(self, endpoints: Endpoints, model: Model) -> None:
        self._endpoints, self._model = endpoints, model

    async def __call__(self, request: Request) -> Reply:
        """Return the whole reply to a request.

        Raises
        ------
        judge.errors.CallError
            If there was none.
        """
        sent = request.parameters
        try:
            completion = await self._endpoints.complete(
                self._model,
                request.messages,
                top_logprobs=sent.top_logprobs,
                decoding=_decoding(sent),
                as_it_is=True,
            )
        except EndpointError as error:
            if error.failure is FailureClass.CONTENT_FILTER:
                return Reply(text="", finish_reason=FILTERED)
            raise _as_call_error(error) from error
        return _reply(completion)

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in their order.

        Raises
        ------
        judge.errors.CallError
            If there was none.
        """
        try:
            return await self._endpoints.embed(self._model, texts)
        except EndpointError as error:
            raise _as_call_error(error) from error

    async def log_likelihoods(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return how likely each text is, in nats, as a vector of one number.

        Raises
        ------
        judge.errors.CallError
            If one could not be given.
        """
        try:
            return [[await self._endpoints.log_likelihood(self._model, text)] for text in texts]
        except EndpointError as error:
            raise _as_call_error(error) from error


def _decoding(sent: Parameters) -> dict[str, object]:
    json_object = {"response_format": {"type": "json_object"}} if sent.json_object else {}
    temperature = {} if sent.temperature is None else {"temperature": sent.temperature}
    return {"max_tokens": sent.max_tokens, **temperature, **json_object}


def _as_call_error(error: EndpointError) -> errors.CallError:
    failure = AS_CALL[error.failure]
    return errors.CallError(failure, error.detail, retry_after_s=error.retry_after_s)


def _reply(completion: Completion) -> Reply:
    tokens, end = completion.logprobs, completion.finished
    return Reply(
        text=completion.text,
        logprobs=None if tokens is None else tuple(map(_token, tokens)),
        finish_reason=end.finish_reason,
        tokens_in=end.tokens_in,
        tokens_out=end.tokens_out,
        model=completion.model,
        fingerprint=completion.fingerprint,
    )


def _token(token: TokenLogprob) -> TokenLogprob:
    """Leave impossible alternatives out: minus infinity is no JSON, and says what absence says."""
    top = {name: logprob for name, logprob in token.top.items() if logprob != -math.inf}
    return TokenLogprob(token.token, token.logprob, top)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model where it answers.

    Attributes
    ----------
    keys : mapping
        API keys by the names that the model gives them.
    budgets : Budgets
        What it may send.
    """

    model: Model
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    budgets: Budgets = DEFAULT_BUDGETS

    @property
    def name(self) -> str:
        """What the judge is called in verdicts."""
        return self.model.id

    @property
    def price(self) -> Price | None:
        """What it charges."""
        return self.model.price

    @property
    def revision(self) -> str:
        """What answers: a change of endpoint, model or decoding is another judge."""
        return revision_of(self.model)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[EndpointJudge]:
        """Hold connections for a run."""
        models, pocket = (self.model,), PocketTransport()
        recordings = load_recordings(models)
        endpoints = reach(models, self.keys, recordings, pocket, budgets=self.budgets)
        async with aclosing(endpoints):
            yield EndpointJudge(endpoints, self.model)


@dataclass(frozen=True, slots=True)
class DatabaseJournal:
    """A journal in a database: SQLite or PostgreSQL, the arena's own or one for runs alone."""

    url: str

    @contextmanager
    def opened(self, judge: str, price: Price | None) -> Iterator[tuple[StoredJournal, str]]:
        """Open the journal of a judge, and give the secret from which its runs are drawn."""
        with closing(Store(self.url)) as store:
            yield journal_of(store, judge, price), judging_seed(store, datetime.now(UTC))


def endpoint(
    url: str,
    model: str,
    *,
    api_key: str | None = None,
    price: Price | None = None,
    name: str | None = None,
    **decoding: object,
) -> ModelEndpoint:
    """Name a model at any server that speaks OpenAI's format.

    Parameters
    ----------
    url : str
        Base URL, with ``/v1``; or ``pocket://local/v1`` with the model ``judge``, a toy.
    api_key : str, optional
        Sent as a bearer token; take it from the environment.
    price : judge.Price, optional
        What it charges: a budget of a run needs it.
    name : str, optional
        What the judge is called in verdicts: its model's name if not given.
    **decoding
        Sent as they stand: ``temperature`` and the like.
    """
    entry = Model(
        id=name or model,
        name=name or model,
        endpoint=url,
        model=model,
        api_key_env=None if api_key is None else KEY,
        decoding=decoding,
        price=price,
    )
    return ModelEndpoint(entry, {} if api_key is None else {KEY: api_key})


def journal(place: str) -> DatabaseJournal:
    """Name the journal: a file such as ``runs.db``, or the URL of a database."""
    return DatabaseJournal(place if "://" in place else f"sqlite:///{place}")


def journal_of(store: Store, judge: str, price: Price | None) -> StoredJournal:
    """Open the journal of a judge in a database that is open."""
    return StoredJournal(store, judge, price, partial(datetime.now, UTC))


def revision_of(model: Model) -> str:
    """Name what answers, down to its revision."""
    return f"{model.id}@{fingerprint(model)[:16]}"


def tagger_of(model: Model) -> Tagger:
    """Name a model as a tagger: another endpoint, template or reader is another version.

    Raises
    ------
    DataError
        If it has the name of the rules, whose labels differ from its own by the name alone.
    """
    if model.id == RULES.name:
        msg = f"The model {model.id!r} has the name of the rules' labels: give it another id."
        raise DataError(msg)
    return Tagger(model.id, version_of(fingerprint(model)[:16]))


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
