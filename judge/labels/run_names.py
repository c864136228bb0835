"""Whether what an agent did says whose it is: names of models and vendors in its steps."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judge.agent_run import Step
from judge.labels.self_naming import MODELS, VENDORS, self_naming
from judge.tables.rating_items import RatingItem, Response

_EVERYDAY = {"amazon", "bard", "falcon", "google", "granite", "inflection", "jamba", "meta"} | {
    *("microsoft", "nova", "phi", "pi", "yi", "zephyr")
}
"""Names that are words of the world as well: only the name of a tool is flagged for them."""
_IDS = r"(?:toolu_|chatcmpl-|msg_0)\w{6,}|call_\w{20,}"
"""Ids that an endpoint of one kind gives."""
_TOOLS = r"str_replace_based_edit_tool|(?:web_search|computer_use)_preview|[a-z_]+_20\d{6}"
"""Names of tools that one vendor's endpoint gives."""
_SOLVERS = {"react"}
"""Names of Inspect's own solvers that are words of the world as well: they say of no run whose."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


@dataclass(frozen=True, slots=True)
class RunName:
    """A name that a rater would read.

    Attributes
    ----------
    place : str
        Where it is, such as "step 3, name of a tool".
    words : str
        As they stand there.
    """

    item: str
    system: str
    place: str
    words: str


def names_in_runs(items: Sequence[RatingItem]) -> list[RunName]:
    """List what in runs names a model, a scaffold or a vendor, each name once a run.

    Names of the models and scaffolds of these items are flagged wherever they stand, and so are
    ids that one vendor's endpoint gives. Known models and vendors are flagged in names of tools
    and arguments, and in what the agent and its instructions say, there without those that are
    everyday words; what a tool gave is of the world, and known names stay. What the task says
    itself is not flagged.
    """
    own = {name for item in items for one in item.responses for name in _own(one)}
    flagged = [
        RunName(item.item, one.model, place, words)
        for item in items
        for one in item.responses
        for place, words in _in_response(item, one, own)
    ]
    once = {(one.system, one.place, one.words, one.item): one for one in flagged}
    return list(once.values())


def tools_of_one(items: Sequence[RatingItem]) -> dict[str, str]:
    """Give the tools that one system alone calls, and that system: a rater may learn them."""
    systems: dict[str, set[str]] = defaultdict(set)
    for one in (one for item in items for one in item.responses if one.run):
        for step in one.run.steps if one.run else ():
            if step.kind == "tool_call":
                systems[step.name].add(one.model)
    return {tool: next(iter(using)) for tool, using in sorted(systems.items()) if len(using) == 1}


def _own(one: Response) -> Iterator[str]:
    """Give the names of a system's parts: whole, without settings, and without an organisation."""
    for name in (one.run.model, one.run.scaffold) if one.run else ():
        if name is not None:
            bare = name.split(" (")[0]
            yield from {name, bare, bare.rsplit("/", 1)[-1]} - _SOLVERS - {""}


def _in_response(
    item: RatingItem, one: Response, own: Collection[str]
) -> Iterator[tuple[str, str]]:
    task = "\n".join(message.content for message in item.messages)
    asked = {words.lower() for words in _matches("name", task, own)}
    texts = [("outcome", "said", message.content) for message in one.turns]
    for n, step in enumerate(one.run.steps if one.run else (), 1):
        texts += [(f"step {n}, {place}", rule, text) for place, rule, text in _texts(step)]
    for place, rule, text in texts:
        for words in _matches(rule, text, own):
            if words.lower() not in asked:
                yield place, words


def _texts(step: Step) -> Iterator[tuple[str, str, str]]:
    """Give the texts of a step, each with its place and by which rule it is read."""
    if step.name:
        yield "name of a tool", "name", step.name
    if step.arguments:
        yield "arguments", "said", step.arguments
    if step.text:
        yield (
            step.kind.replace("_", " "),
            "given" if step.kind == "tool_result" else "said",
            step.text,
        )


def _matches(rule: str, text: str, own: Collection[str]) -> Iterator[str]:
    """Give the names in a text: by the rule for names of tools, what is said, what is given."""
    apart = _HUMP.sub(" ", text) if rule == "name" else text.replace("_", " ")
    patterns = _patterns(tuple(sorted(own)))
    for match in patterns["own"].finditer(apart):
        yield match[0]
    for match in patterns["ids"].finditer(text):
        yield match[0]
    if rule == "given":
        return
    for match in patterns["known"].finditer(apart):
        if rule == "name" or match["name"].lower() not in _EVERYDAY:
            yield match[0].rstrip(".-")
    if rule == "name":
        for match in patterns["tools"].finditer(text):
            yield match[0]
    elif (naming := self_naming(text, own)) and naming.kind == "self":
        yield naming.name


@lru_cache(maxsize=8)
def _patterns(own: Sequence[str]) -> Mapping[str, re.Pattern[str]]:
    names = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True)) or r"(?!)"
    return {
        "own": re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE),
        "known": re.compile(rf"\b(?P<name>{VENDORS}|{MODELS})(?:[-\d.]\w*)*(?!\w)", re.IGNORECASE),
        "ids": re.compile(rf"(?<!\w)(?:{_IDS})"),
        "tools": re.compile(rf"(?<!\w)(?:{_TOOLS})(?!\w)", re.IGNORECASE),
    }
