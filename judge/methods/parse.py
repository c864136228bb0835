"""Reads a method of judging from its file, and says what in it cannot be."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from judge.completion import Parameters
from judge.grammar import Preference
from judge.methods.file import FileMethod, Grammar
from judge.methods.schema import (
    DECODING,
    GRAMMARS,
    NAME,
    OF_ONE,
    OF_PAIRS,
    OPTIONAL,
    REPLY,
    TEMPLATE,
    TOP,
    require_keys,
)
from judge.protocol import Description, Template
from rating.errors import DataError
from rating.tables.files import parsed_toml, read_text

ENDING = ".toml"
PARSER = 3
"""Version of `judge.grammar`: another one reads what is kept again, and asks nothing."""
USUAL_TOKENS = 250
"""Expected of a reply, where a file does not say."""


@cache
def published(name: str) -> FileMethod:
    """Read one of the methods that come with the arena, by its name."""
    text = (files("judge.methods") / f"{name}{ENDING}").read_text("utf-8")
    return parsed(text, name, f"{name}{ENDING}")


def read_method(path: Path, taken: tuple[str, ...]) -> FileMethod:
    """Read a method from a file of somebody's own.

    Parameters
    ----------
    taken : tuple of str
        Names that it cannot have.

    Raises
    ------
    DataError
        If it cannot be read, is no such file, or has a name that is taken.
    """
    name = path.name.removesuffix(ENDING)
    if name in taken or not NAME.fullmatch(name):
        why = "is the name of a published method" if name in taken else "is no name of a method"
        msg = f"{name!r} {why}, and stands in verdicts: give the file {str(path)!r} another one."
        raise DataError(msg)
    method = parsed(read_text(path), name, str(path))
    if method.fallback is not None and method.fallback.endswith(ENDING):
        return replace(method, fallback=str(path.parent / method.fallback))
    return method


def parsed(text: str, name: str, source: str) -> FileMethod:
    """Read the text of a method's file.

    Raises
    ------
    DataError
        If a key is unknown, missing or malformed, or two do not go together; it is quoted.
    """
    values = parsed_toml(text, repr(source))
    require_keys(source, "", values, TOP)
    require_keys(source, "[decoding]", values["decoding"], DECODING)
    grammar = _grammar(source, values["reply"])
    method = FileMethod(
        description=_description(name, values, _template(source, values["template"])),
        about=values["about"],
        fields=tuple(values["fields"]),
        grammar=grammar,
        score=values.get("score"),
        swap_share=0.0 if values.get("orders") == "one" else 1.0,
        fallback=values.get("fallback"),
        length_margin=values.get("length_margin"),
        changes=tuple(values.get("changes", ())),
        text=text,
    )
    for wrong, why in _contradictions(method, values):
        if wrong:
            msg = f"{source!r}: {why}."
            raise DataError(msg)
    return method


def _grammar(source: str, values: Mapping[str, Any]) -> Grammar:
    require_keys(source, "[reply]", values, REPLY)
    name = values["grammar"]
    keys = {key: REPLY[key] for key in REPLY if key == "grammar" or key in GRAMMARS[name]}
    required = {key: replace(one, required=key not in OPTIONAL) for key, one in keys.items()}
    require_keys(source, f"[reply] of the grammar {name!r}", values, required)
    return Grammar(
        name=name,
        verdicts={one: Preference(share) for one, share in values.get("verdicts", {}).items()},
        key=values.get("key", ""),
        scale=tuple(values["scale"]) if "scale" in values else None,
        labels=tuple(values.get("labels", ("m", "M"))),
        fractions=values.get("fractions", False),
    )


def _template(source: str, values: str | Mapping[str, Any]) -> Template:
    if isinstance(values, str):
        if not NAME.fullmatch(values) or not (files("judge.methods") / f"{values}.toml").is_file():
            msg = f"{source!r}: template is {values!r}: name a published method, for its words."
            raise DataError(msg)
        return published(values).template
    require_keys(source, "[template]", values, TEMPLATE)
    return Template.of(values["system"], values["user"], values.get("given"))


def _description(name: str, values: Mapping[str, Any], template: Template) -> Description:
    sent = dict(values["decoding"])
    expected = sent.pop("expected_tokens", min(sent["max_tokens"], USUAL_TOKENS))
    return Description(
        name=name,
        template=template,
        parameters=Parameters(**sent),
        parser=PARSER,
        pairwise=not {"response_b", "turns_b"}.isdisjoint(values["fields"]),
        samples=values.get("samples", 1),
        tokens_out=expected,
        source=values.get("source", ""),
    )


def _contradictions(method: FileMethod, values: Mapping[str, Any]) -> Iterator[tuple[object, str]]:
    """Give what must not be, and the sentence for it."""
    yield from _in_words(method)
    fields, grammar, pairwise = {*method.fields}, method.grammar.name, method.pairwise
    named = f"grammar is {grammar!r}, which"
    yield (
        pairwise and fields.isdisjoint({"response_a", "turns_a"}),
        f"fields is {values['fields']}: two responses are compared, so show response_a or turns_a",
    )
    yield (
        grammar in OF_PAIRS and not pairwise,
        f"{named} tells two responses apart: name response_b or turns_b in fields",
    )
    yield (
        grammar in OF_ONE and pairwise,
        f"{named} looks at one response: take response_b and turns_b out of fields",
    )
    yield (
        grammar == "answers" and not method.by_checklist,
        f"{named} reads yes or no to items: name checklist in fields",
    )
    by_token = grammar == "label_probability"
    yield (
        by_token and method.description.parameters.top_logprobs is None,
        f"{named} reads log-probabilities: ask for them with top_logprobs in [decoding]",
    )
    yield (
        method.fallback is not None and not by_token,
        f"fallback is {method.fallback!r}, for replies without log-probabilities: only the "
        "grammar 'label_probability' reads any",
    )
    for key in ("samples", "orders", "length_margin"):
        yield (
            key in values and not pairwise,
            f"{key} is {values.get(key)!r}, which is for methods that compare two responses",
        )


def _in_words(method: FileMethod) -> Iterator[tuple[object, str]]:
    """Give what must not be in a template, and the sentence for it."""
    template, fields = method.template, {*method.fields}
    scale = {"low", "high"} if method.grammar.scale else set()
    empty, idle = template.places - fields - scale - {"nonce"}, fields - template.places
    every = (template.system, template.user, *template.given.values())
    words = "".join(text for pieces in every for text in pieces[::2])
    yield (
        "${" in words,
        f"a place is written ${{response_a}}, not {words[words.find('${') :][:20]!r}",
    )
    yield (
        empty,
        f"nothing fills the places {_quoted(empty)} of the template: name them in fields, or take "
        "them out",
    )
    yield (
        idle,
        f"the fields {_quoted(idle)} stand nowhere in the template: write "
        f"${{{min(idle, default='')}}} there, or take them out",
    )
    yield (
        {*template.given} - fields,
        f"[template.given] has {_quoted({*template.given} - fields)}, which is not in fields",
    )
    yield (
        {*template.given} & {*template.system[1::2]},
        f"[template.given] has {_quoted(template.given)}, which stands in the system message: put "
        "it in the user's message alone",
    )
    yield (
        "nonce" not in template.places,
        "there is no ${nonce} in the template: put [begin answer ${nonce}] and [end answer "
        "${nonce}] around what others wrote, so that no answer can end its own fence",
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))
