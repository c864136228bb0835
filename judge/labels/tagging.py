"""A model as tagger: what it is asked of a prompt, how its reply is read, and what is labelled."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from judge.case import Case, Message
from judge.completion import Parameters, Reply, Request
from judge.errors import FailureClass
from judge.grammar import Reading, Tags
from judge.labels.taggers import (
    CATEGORIES,
    CRITERIA,
    INTENTS,
    OTHER,
    UNKNOWN,
    Label,
    counted,
    hard,
    shown_part,
)
from judge.protocol import Description, Method, Template, conversation, read_text

FACETS = ("category", "language", "intent", "turns", "chars", "hard")
"""What is labelled: by the model, but for the numbers of turns and of characters."""

_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da "
    "de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy "
    "hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg "
    "li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or "
    "os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta "
    "te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
LANGUAGES = frozenset(_CODES.split())
"""Codes of ISO 639-1."""

_OFFERED: dict[str, frozenset[str]] = {
    "category": frozenset((*CATEGORIES, OTHER)),
    "language": LANGUAGES | {UNKNOWN},
    "intent": frozenset(INTENTS),
}
_CRITERIA = "criteria"
_OBJECT = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Tagging(Method):
    """Asks what a prompt asks for; there is no response."""

    @property
    def description(self) -> Description:
        """What it is; the words lie beside this module."""
        return _described()

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a prompt."""
        return self.description.request(nonce, {"prompt": conversation(case)})

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return the tags, or why there are none."""
        return read_text(reply, tags_in)


@cache
def _described() -> Description:
    system, user = (files("judge.labels") / "tagging.txt").read_text("utf-8").split("\n=====\n")
    return Description(
        name="tagging",
        template=Template.of(system, user),
        parameters=Parameters(max_tokens=1024, temperature=0.0, json_object=True),
        tokens_out=60,
        source="Criteria: Li et al. 2024 (arXiv:2406.11939), section 4.1; our words",
    )


def case_of(prompts: Sequence[str]) -> Case:
    """Return the prompts of a conversation, oldest first, as what is asked about.

    As with rules, of a long text the middle is left out: a request has a highest price.
    """
    return Case((Message("user", shown_part("\n\n".join(prompts))),), "")


def version_of(revision: str) -> str:
    """Name the version of the labels of a model: what answers, what it was asked, how it is read.

    Parameters
    ----------
    revision : str
        Of the model.

    Examples
    --------
    >>> version_of("2b7e1516") == f"2b7e1516-{Tagging().description.template.hash}-2"
    True
    """
    description = Tagging().description
    return f"{revision}-{description.template.hash}-{description.parser}"


def tags_in(text: str) -> Tags | None:
    """Read the last JSON object of a text, if every value in it was offered.

    None for a missing or further key, a key that comes twice, and a value that was not offered:
    nothing stands in for it.

    Examples
    --------
    >>> reply = '{"category": "code", "language": "en", "intent": "asking", "criteria": []}'
    >>> tags_in(reply).category
    'code'
    >>> tags_in(reply.replace("code", "weather")) is None
    True
    """
    objects = _OBJECT.findall(text)
    try:
        values = json.loads(objects[-1] if objects else "", object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    if values.keys() != {*_OFFERED, _CRITERIA} or not _were_offered(values):
        return None
    met = values.pop(_CRITERIA)
    return Tags(**values, criteria=tuple(name for name in CRITERIA if name in met))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _were_offered(values: dict[str, Any]) -> bool:
    met = values[_CRITERIA]
    texts = [values[name] for name in _OFFERED]
    if not isinstance(met, list) or not all(isinstance(one, str) for one in (*texts, *met)):
        return False
    named = len({*met}) == len(met) and {*met} <= {*CRITERIA}
    return named and all(values[name] in offered for name, offered in _OFFERED.items())


def labels_of(tags: Tags, prompts: Sequence[str]) -> dict[str, Label]:
    """Give a label for each of `FACETS` to the prompts of a conversation."""
    return {
        "category": Label(tags.category),
        "language": Label(tags.language),
        "intent": Label(tags.intent),
        **counted(prompts),
        "hard": hard(tags.criteria),
    }
