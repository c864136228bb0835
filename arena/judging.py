"""Judges at work: models at endpoints, journals in databases, and cases from battles; no web."""

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from arena.domain.model import Model
from arena.domain.vote import RULES, Completion, FailureClass, Tagger
from arena.endpoints.chat import finish_reason
from arena.endpoints.client import Endpoints, Timeouts, reach
from arena.endpoints.failures import known_as
from arena.endpoints.offline import PocketTransport, load_recordings
from arena.endpoints.sse import DEFAULT_BUDGETS, Budgets
from arena.errors import EndpointError
from arena.store import battles as single_battles
from arena.store.judgements import StoredJournal, judging_seed
from arena.store.store import Store
from arena.store.tables import fingerprint
from judge import case as errors
from judge.budget import Price, tokens_by_rule
from judge.calls import LONGEST_S, PLAIN, Journal, Profile, Terms
from judge.case import BROKEN, FILTERED, Case, Message, Parameters, Reply, Request, TokenLogprob
from judge.labels.files import version_of
from judge.tables.cases import NamedCase, each_response
from rating.errors import DataError

__all__ = [
    "EndpointJudge",
    "ModelEndpoint",
    "as_call_error",
    "battle_cases",
    "battle_responses",
    "endpoint",
    "filtered",
    "former_revision_of",
    "journal",
    "journal_of",
    "reply_of",
    "revision_of",
    "tagger_of",
    "terms_of",
]

KEY = "API_KEY"

DENYING = frozenset({FailureClass.AUTH, FailureClass.NO_CREDIT, FailureClass.NOT_FOUND})
"""Failures that every further request would meet, so that a judge's run stops at once.

The key or the model's name is wrong, or the account has no credit.
"""

AS_CALL: Mapping[FailureClass, errors.FailureClass] = {
    **dict.fromkeys(DENYING, errors.FailureClass.DENIED),
    FailureClass.BAD_REQUEST: errors.FailureClass.REJECTED,
    FailureClass.CONTEXT_LENGTH: errors.FailureClass.TOO_LONG,
    FailureClass.OVERLOADED: errors.FailureClass.OVERLOADED,
    FailureClass.INTERNAL: errors.FailureClass.OVERLOADED,
    FailureClass.DROPPED: errors.FailureClass.TRANSPORT,
    FailureClass.MALFORMED: errors.FailureClass.TRANSPORT,
    FailureClass.REVEALED: errors.FailureClass.TRANSPORT,
    FailureClass.TIMEOUT: errors.FailureClass.TRANSPORT,
    FailureClass.UNREACHABLE: errors.FailureClass.TRANSPORT,
    FailureClass.RATE_LIMIT: errors.FailureClass.RATE_LIMIT,
    FailureClass.CONTENT_FILTER: errors.FailureClass.REJECTED,
}
"""How the judge takes what went wrong at an endpoint; a verdict that was filtered is a reply."""


FIRST_S = 2.0
"""Longest that others wait for the first request with their parameters: it may be refused."""


class EndpointJudge:
    """Sends requests to one model. Parameters of a request override the model's decoding.

    A parameter that the endpoint refuses is omitted from the same request, and of all later ones.
    """

    def __init__(self, endpoints: Endpoints, model: Model, terms: Terms | None = None) -> None:
        self._endpoints, self._model, self._terms = endpoints, model, terms or Terms()
        self._first: dict[Parameters, asyncio.Event] = {}

    async def __call__(self, request: Request) -> Reply:
        """Return the whole reply to a request.

        Raises
        ------
        judge.case.CallError
            If there was none.
        """
        first = self._first.get(request.parameters)
        if first is None:
            first = self._first[request.parameters] = asyncio.Event()
            try:
                return await self._asked(request)
            finally:
                first.set()
        if not first.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(first.wait(), FIRST_S)
        return await self._asked(request)

    async def _asked(self, request: Request) -> Reply:
        terms, asked = self._terms, request.parameters
        self._require_able(asked)
        try:
            completion = await self._endpoints.complete(
                self._model,
                request.messages,
                decoding=terms.decoding(asked),
                as_it_is=True,
                within_s=terms.seconds,
                lessons=terms.lessons,
            )
        except EndpointError as error:
            if (refused := filtered(error)) is not None:
                return refused
            self._require_able(asked)
            raise as_call_error(error) from error
        return reply_of(completion)

    def _require_able(self, asked: Parameters) -> None:
        if lack := self._terms.lacks(asked):
            raise errors.CallError(errors.FailureClass.NO_LOGPROBS, lack)

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in their order.

        Raises
        ------
        judge.case.CallError
            If there was none.
        """
        try:
            return await self._endpoints.embed(self._model, texts, self._terms.lessons)
        except EndpointError as error:
            raise as_call_error(error) from error

    async def log_likelihoods(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return how likely each text is, in nats, as a vector of one number.

        Raises
        ------
        judge.case.CallError
            If one could not be given.
        """
        ask = partial(self._endpoints.log_likelihood, self._model, lessons=self._terms.lessons)
        try:
            return [[await ask(text)] for text in texts]
        except EndpointError as error:
            raise as_call_error(error) from error


def filtered(error: EndpointError) -> Reply | None:
    """Return the reply for a request that a filter refused; None for any other failure."""
    if error.failure is not FailureClass.CONTENT_FILTER:
        return None
    return Reply(text="", finish_reason=FILTERED)


def as_call_error(error: EndpointError) -> errors.CallError:
    """Convert an error of an endpoint into one of a judge's call."""
    failure, end = AS_CALL[error.failure], error.counted
    paid = None
    if end is not None and (end.tokens_in, end.tokens_out) != (None, None):
        paid = Reply(text="", tokens_in=end.tokens_in, tokens_out=end.tokens_out)
    return errors.CallError(failure, error.detail, retry_after_s=error.retry_after_s, paid=paid)


def reply_of(completion: Completion) -> Reply:
    """Convert an endpoint's answer into a judge's reply."""
    tokens, end = completion.logprobs, completion.finished
    return Reply(
        text=completion.text,
        logprobs=None if tokens is None else tuple(map(_token, tokens)),
        finish_reason=end.finish_reason,
        tokens_in=end.tokens_in,
        tokens_out=end.tokens_out,
        tokens_thinking=_thinking(completion),
        model=completion.model,
        fingerprint=completion.fingerprint,
    )


def _thinking(completion: Completion) -> int | None:
    """Count the tokens of thoughts, by the rule of characters where the endpoint did not."""
    counted, tokens_out = completion.finished.tokens_thinking, completion.finished.tokens_out
    if counted is not None or not completion.reasoning:
        return counted
    by_rule = round(tokens_by_rule(completion.reasoning))
    return by_rule if tokens_out is None else min(by_rule, tokens_out)


def _token(token: TokenLogprob) -> TokenLogprob:
    """Leave impossible alternatives out: minus infinity is not JSON, and absence says the same."""
    top = {name: logprob for name, logprob in token.top.items() if logprob != -math.inf}
    return TokenLogprob(token.token, token.logprob, top)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model with its endpoint.

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
        """What answers: a change of model or decoding is another judge, one of address is not."""
        return revision_of(self.model)

    def terms(self, journal: Journal) -> Terms:
        """Give what its entry says, and what runs on this journal have learnt."""
        return terms_of(self.model, journal)

    @asynccontextmanager
    async def opened(self, terms: Terms | None = None) -> AsyncIterator[EndpointJudge]:
        """Hold connections for a run; without terms, on those of the model's entry alone."""
        models, pocket = (self.model,), PocketTransport()
        recordings = load_recordings(models)
        timeouts = Timeouts(whole_s=self.model.judging.timeout_s or LONGEST_S)
        endpoints = reach(models, self.keys, recordings, pocket, timeouts, self.budgets)
        async with aclosing(endpoints):
            yield EndpointJudge(endpoints, self.model, terms or Terms(self.model.judging))


@dataclass(frozen=True, slots=True)
class _DatabaseJournal:
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
    judging: Profile = PLAIN,
    api_key_header: str | None = None,
    without: Sequence[str] = (),
    **decoding: object,
) -> ModelEndpoint:
    """Return a model at a server with OpenAI's API.

    Parameters
    ----------
    url : str
        Base URL, with ``/v1``; or ``pocket://local/v1`` with the model ``judge``, a toy.
    api_key : str, optional
        Sent as a bearer token, unless a header is named; take it from the environment.
    price : judge.Price, optional
        Its price, which the budget of a run needs.
    name : str, optional
        What the judge is called in verdicts: its model's name if not given.
    judging : judge.Profile
        Parameters that the endpoint accepts, and reasoning settings.
    api_key_header : str, optional
        Header that takes the bare key, such as ``api-key`` or ``x-api-key``.
    without : sequence of str
        Parameters that are never sent, as in a roster.
    **decoding
        Sent as they stand: ``temperature`` and the like.
    """
    entry = Model(
        id=name or model,
        name=name or model,
        endpoint=url,
        model=model,
        api_key_env=None if api_key is None else KEY,
        api_key_header=api_key_header,
        without=tuple(without),
        decoding=decoding,
        price=price,
        judging=judging,
    )
    return ModelEndpoint(entry, {} if api_key is None else {KEY: api_key})


def journal(place: str) -> _DatabaseJournal:
    """Return the journal in a file such as ``runs.db``, or in the database of a URL."""
    return _DatabaseJournal(place if "://" in place else f"sqlite:///{place}")


def journal_of(store: Store, judge: str, price: Price | None) -> StoredJournal:
    """Return the journal of a judge in an open database."""
    return StoredJournal(store, judge, price, partial(datetime.now, UTC), as_it_ended)


def as_it_ended(reply: Reply) -> Reply:
    """Give a kept reply with its finish reason as it is read today: see `finish_reason`."""
    text = bool(reply.text.strip() or reply.logprobs)
    try:
        reason = finish_reason(reply.finish_reason, has_text=text, as_it_is=True)
    except EndpointError:
        reason = BROKEN
    return reply if reason == reply.finish_reason else replace(reply, finish_reason=reason)


def revision_of(model: Model) -> str:
    """Return the revision of a judge: the model and its decoding.

    Neither its address nor its id in a roster: replicas have one journal.

    Examples
    --------
    >>> one = Model(id="a", name="A", endpoint="http://localhost:8000/v1", model="qwen3")
    >>> other = Model(id="b", name="B", endpoint="http://127.0.0.1:8001/v1", model="qwen3")
    >>> revision_of(one) == revision_of(other)
    True
    """
    built_in = "" if model.endpoint.startswith("http") else model.endpoint
    answering = {
        "endpoint": built_in,
        "system_prompt": model.system_prompt,
        "decoding": {**model.decoding, **model.judging.decoding},
        "recording": model.recording,
        **({"without": model.lacking} if model.lacking else {}),
    }
    content = json.dumps(answering, sort_keys=True, default=str).encode()
    return f"{model.model}@{hashlib.sha256(content).hexdigest()[:16]}"


def former_revision_of(model: Model) -> str:
    """Return the revision as in earlier journals, where it included the address."""
    return f"{model.id}@{fingerprint(model)[:16]}"


def terms_of(model: Model, journal: Journal) -> Terms:
    """Return the known properties of a model's endpoint; new ones are stored with the journal."""
    endpoint = known_as(model)
    return Terms(model.judging, journal.lessons(endpoint), partial(journal.learn, endpoint))


def tagger_of(model: Model) -> Tagger:
    """Return a model as a tagger: another endpoint, template or parser is another version.

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
    battles = store.read(single_battles.answered)
    if not battles:
        raise DataError("No battle has two whole answers to one prompt: let people play first.")
    return [
        NamedCase(battle, prompt_id or case.prompt_id[:16], (a.model_id, b.model_id), case)
        for battle, prompt_id, prompt, a, b in battles
        for case in [Case((Message("user", prompt),), a.text, b.text)]
    ]


def battle_responses(store: Store) -> list[NamedCase]:
    """Return the answers of the battles of `battle_cases`."""
    return list(each_response(battle_cases(store)))
