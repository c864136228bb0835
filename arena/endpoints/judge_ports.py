"""Judges and embeddings over the endpoints: the ports of `judge` for a model of the roster."""

import math
from collections.abc import Mapping, Sequence

from arena.domain.answer import Completion, FailureClass
from arena.domain.model import Model
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from judge import errors
from judge.completion import FILTERED, Parameters, Reply, Request, TokenLogprob

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


class EndpointEmbedder:
    """Embeds texts with one model, once."""

    def __init__(self, endpoints: Endpoints, model: Model) -> None:
        self._endpoints, self._model = endpoints, model

    async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
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
    )


def _token(token: TokenLogprob) -> TokenLogprob:
    """Leave impossible alternatives out: minus infinity is no JSON, and says what absence says."""
    top = {name: logprob for name, logprob in token.top.items() if logprob != -math.inf}
    return TokenLogprob(token.token, token.logprob, top)
