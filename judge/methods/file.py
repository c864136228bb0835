"""Methods of judging as TOML files: templates, grammar of the reply, and validation.

`published` and `read_method` read a `FileMethod`: in which words a judge is asked, and how its
reply is read. A file with an unknown key or a contradiction raises an error that quotes it.
`written` collects checklists by prompt, and `margined` takes a length margin off verdicts.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from judge.case import FILTERED, Case, CaseId, FailureClass, Parameters, Reply, Request
from judge.grammar import (
    Items,
    Preference,
    Questions,
    Rating,
    Reading,
    answers,
    bracketed,
    bracketed_mark,
    keyed,
    keyed_mark,
    label_probability,
    lone_label,
    questions,
)
from judge.protocol import Description, Template, Turns, conversation, dialogue, pair, read_text
from judge.replies import answer_tokens
from judge.verdict import Judged
from rating.errors import DataError
from rating.tables.files import parsed_toml
from rating.tables.files import read_text as read_text_file

# Checklists and length margins


Checklists = Mapping[str, tuple[str, ...]]
"""Questions by `Case.prompt_id`."""

TYPICAL = ("Does the answer do what was asked, and is what it says about this point right?",) * 7
"""Stands in estimates for a checklist that is still to be written: about 130 tokens."""


def written(judged: Iterable[Judged], cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Return the checklists that a run of checklist_writer over ``cases`` brought, by prompt.

    Prompts whose checklist could not be read are not among them: leave their cases out, and say
    so.
    """
    prompts = {case.id: case.prompt_id for case in cases}
    return {
        prompts[row.case_id]: row.reading.items
        for row in judged
        if isinstance(row.reading, Questions)
    }


def _checklist_of(case: Case, checklists: Checklists) -> tuple[str, ...]:
    """Return the questions for a case's prompt.

    Raises
    ------
    DataError
        If there are none.
    """
    items = checklists.get(case.prompt_id, ())
    if not items:
        raise DataError(
            f"There is no checklist for the prompt {case.prompt[-1].content[:60]!r}"
            f" ({case.prompt_id[:12]}). Let checklist_writer write one, or give it."
        )
    return items


def unanswered(case: Case) -> Case:
    """Return the prompt of a case without its responses."""
    return Case(case.prompt, "")


def with_margin(preference: Preference, case: Case, margin: int | None) -> Preference:
    """Make a tie of a slight win by a reply that is longer by more than a margin.

    Parameters
    ----------
    preference : Preference
        For side A of ``case``.
    margin : int or None
        WildBench's K, in characters; None leaves every verdict as it is (its K = infinity, which
        its code writes as -1).

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench: benchmarking LLMs with challenging tasks from real users
       in the wild", ICLR 2025, section 3.3, length margin K.

    Examples
    --------
    >>> from judge.case import Message
    >>> case = Case((Message("user", "Hi"),), "long " * 200, "short")
    >>> with_margin(Preference(0.75), case, 500), with_margin(Preference(1.0), case, 500)
    (Preference(first=0.5), Preference(first=1.0))
    """
    first, second = pair(case)
    longer = len(first) - len(second)
    slight = {0.75: longer, 0.25: -longer}.get(preference.first)
    if margin is None or slight is None or slight <= margin:
        return preference
    return Preference(0.5)


def margined(
    judged: Iterable[Judged], cases: Mapping[CaseId, Case], margin: int | None
) -> tuple[Judged, ...]:
    """Return the rows of a run with the length margin taken off.

    The journal keeps what the judge said, so another margin on the same replies is free.
    """
    return tuple(
        replace(row, reading=with_margin(row.reading, cases[row.case_id].shown(row.order), margin))
        if isinstance(row.reading, Preference)
        else row
        for row in judged
    )


def reward(preference: Preference) -> float:
    """Return WB-Reward of the first: 1 much better, 1/2 slightly, 0 equal, and so down to -1.

    Examples
    --------
    >>> [reward(Preference(share)) for share in (1.0, 0.75, 0.5, 0.25, 0.0)]
    [1.0, 0.5, 0.0, -0.5, -1.0]
    """
    return 2 * preference.first - 1


# Keys of a file


FIELDS = (
    "prompt", "response_a", "response_b", "turns_a", "turns_b",
    "reference", "checklist", "rubric",
)  # fmt: skip
"""What a template may show: of the case, and of the rules that it is judged by."""

SCORES = (
    "alpaca_eval", "arena_hard", "llmbar", "marks", "pairwise", "wildbench",
    "wildbench_reward",
)  # fmt: skip
"""What `arena judge score` may make of the verdicts."""

GRAMMARS: Mapping[str, frozenset[str]] = {
    "bracketed": frozenset({"verdicts"}),
    "keyed": frozenset({"key", "verdicts"}),
    "bracketed_mark": frozenset({"scale", "fractions"}),
    "keyed_mark": frozenset({"key", "scale", "fractions"}),
    "label_probability": frozenset({"labels"}),
    "lone_label": frozenset({"labels"}),
    "answers": frozenset(),
    "questions": frozenset({"scale"}),
}
"""The grammars of `judge.grammar`, by the names of their functions, and the keys of each."""

OPTIONAL = frozenset({"fractions"})
"""Keys that a grammar may have."""
OF_PAIRS = ("bracketed", "keyed", "label_probability", "lone_label")
"""Grammars that read which of two responses is preferred."""
OF_ONE = ("answers", "questions")
"""Grammars that never do."""

VERDICT = re.compile(r"[A-Z](?:[<>=+]{1,3}[A-Z]?)?")
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,59}")


@dataclass(frozen=True, slots=True)
class _Key:
    """What a key may be.

    Attributes
    ----------
    allows : callable
        Whether a value is one.
    wanted : str
        What to give, for the error.
    """

    allows: Callable[[Any], bool]
    wanted: str
    required: bool = False


Keys = Mapping[str, _Key]


def _line(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _lines(value: Any) -> bool:
    return isinstance(value, list) and all(map(_line, value))


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _number(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) in (int, float) and low <= value <= high


def _one_of(names: Iterable[str]) -> Callable[[Any], bool]:
    known = frozenset(names)
    return lambda value: isinstance(value, str) and value in known


def _fields(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(map(_one_of(FIELDS), value))
        and len(set(value)) == len(value)
    )


def _is_scale(value: Any) -> bool:
    """Whether a value is two whole marks that run upwards within 0 and 999."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(map(_whole(0, 999), value))
        and value[0] < value[1]
    )


def _verdicts(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(VERDICT.fullmatch(name) for name in value)
        and all(map(_number(0, 1), value.values()))
        and any(share > 0.5 for share in value.values())
        and any(share < 0.5 for share in value.values())
    )


def _labels(value: Any) -> bool:
    words = isinstance(value, list) and all(
        isinstance(one, str) and re.fullmatch(r"\w{1,16}", one) for one in value
    )
    return words and len(value) == len(set(value)) == 2


def _table(value: Any) -> bool:
    return isinstance(value, dict)


TOP: Keys = {
    "about": _Key(_line, "one line that states what is asked", required=True),
    "source": _Key(_line, "one line that says where the method comes from"),
    "score": _Key(_one_of(SCORES), f"one of {', '.join(SCORES)}"),
    "fields": _Key(_fields, f"a list of some of {', '.join(FIELDS)}, each once", required=True),
    "orders": _Key(_one_of(("both", "one")), '"both", or "one" that is drawn for each pair'),
    "upstream": _Key(
        lambda value: isinstance(value, bool), "true for the words of a source to the letter"
    ),
    "samples": _Key(_whole(1, 100), "a whole number from 1 to 100"),
    "fallback": _Key(_line, "the name of a method, or a file beside this one that ends in .toml"),
    "length_margin": _Key(_whole(0, 1_000_000), "a whole number of characters"),
    "changes": _Key(_lines, "a list of sentences, one for each difference from the source"),
    "reply": _Key(_table, "a table [reply]", required=True),
    "decoding": _Key(_table, "a table [decoding]", required=True),
    "template": _Key(
        lambda value: _table(value) or _line(value),
        "a table [template], or the name of a published method, for its words",
        required=True,
    ),
}
REPLY: Keys = {
    "grammar": _Key(_one_of(GRAMMARS), f"one of {', '.join(GRAMMARS)}", required=True),
    "verdicts": _Key(
        _verdicts,
        "a table from verdicts such as A, A>>B or A++ to how far the first response is preferred, "
        "from 0 to 1, some above and some below 0.5",
    ),
    "key": _Key(
        lambda value: isinstance(value, str) and re.fullmatch(r"[\w -]{1,60}", value) is not None,
        "a key of JSON, in letters, digits, _ and -",
    ),
    "scale": _Key(_is_scale, "the lowest and the highest mark within 0 and 999, as in [1, 10]"),
    "fractions": _Key(
        lambda value: isinstance(value, bool), "true or false: whether marks such as 7.5 count"
    ),
    "labels": _Key(_labels, 'two words of which the first is for the first, as in ["m", "M"]'),
}
DECODING: Keys = {
    "max_tokens": _Key(_whole(1, 1_000_000), "a whole number from 1 on", required=True),
    "temperature": _Key(_number(0, 2), "a number from 0 to 2, or nothing to send none"),
    "top_logprobs": _Key(_whole(1, 20), "a whole number from 1 to 20"),
    "json_object": _Key(lambda value: isinstance(value, bool), "true or false"),
    "expected_tokens": _Key(_whole(1, 1_000_000), "the usual tokens of a reply, from 1 on"),
}
TEMPLATE: Keys = {
    "system": _Key(_text, "the words of the system message", required=True),
    "user": _Key(_text, "the words of the user's message", required=True),
    "given": _Key(
        lambda value: _table(value) and {*value} == {"reference"} and _text(value["reference"]),
        "a table with reference: the words at its place where a case has a right answer",
    ),
}


def _require_keys(source: str, table: str, values: Mapping[str, Any], keys: Keys) -> None:
    """Raise `DataError` unless a table has the keys that it must, no others, and fit values.

    Parameters
    ----------
    source : str
        The file, for the error.
    table : str
        Such as ``[reply]``; empty for the keys above all tables.
    """
    where = f"{source!r}{f', {table}' if table else ''}"
    for name, value in values.items():
        if name not in keys:
            raise DataError(f"{where}: there is no key {name!r}: use {', '.join(keys)}.")
        if not keys[name].allows(value):
            raise DataError(f"{where}: {name} is {value!r}: give {keys[name].wanted}.")
    for name, key in keys.items():
        if key.required and name not in values:
            raise DataError(f"{where}: the key {name!r} is missing: give {key.wanted}.")


# Methods


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grammar:
    """How a reply is read: one of the grammars of `judge.grammar`, and what it offers.

    Attributes
    ----------
    name : str
        One of `GRAMMARS`.
    verdicts : mapping
        From what may be said to how far the first response is preferred.
    key : str
        Of JSON, under which the verdict or the mark stands.
    scale : (int, int) or None
        Lowest and highest mark, or fewest and most questions.
    labels : (str, str)
        For the first response and for the second.
    fractions : bool
        Whether marks between whole ones count.
    """

    name: str
    verdicts: Mapping[str, Preference] = field(default_factory=dict)
    key: str = ""
    scale: tuple[int, int] | None = None
    labels: tuple[str, str] = ("m", "M")
    fractions: bool = False

    @property
    def wanted(self) -> str:
        """What a reply is to hold, in words."""
        low, high = self.scale or (0, 0)
        mark = f"a {'' if self.fractions else 'whole '}mark from {low} to {high}"
        match self.name:
            case "bracketed":
                return (
                    f"{_file_one_of(f'[[{name}]]' for name in self.verdicts)}, as its last verdict"
                )
            case "keyed":
                verdicts = _file_one_of(f'"{name}"' for name in self.verdicts)
                return f'JSON with the key "{self.key}" and the value {verdicts}'
            case "bracketed_mark":
                return f"{mark} in double brackets, as in [[{high}]], as its last mark"
            case "keyed_mark":
                return f'JSON with the key "{self.key}" and {mark}'
            case "label_probability":
                return f"{_file_one_of(self.labels)} as its first token, with log-probabilities"
            case "lone_label":
                return f"{_file_one_of(self.labels)}, and nothing else"
            case "answers":
                return "yes or no to each item by its number, as in 3: [[yes]]"
            case _:
                return f"{low} to {high} lines that begin with '- ' and end with a question mark"

    def read(self, text: str, n_items: int, pairwise: bool) -> Reading | None:
        """Return what a text says, or None."""
        low, high = self.scale or (0, 0)
        match self.name:
            case "bracketed":
                return bracketed(text, self.verdicts)
            case "keyed":
                return keyed(text, self.key, self.verdicts)
            case "lone_label":
                return lone_label(text, self.labels)
            case "answers":
                met = answers(text, n_items)
                return None if all(item is None for item in met) else Items(met)
            case "questions":
                items = questions(text, low, high)
                return None if items is None else Questions(items)
            case "keyed_mark":
                mark = keyed_mark(text, self.key, low, high, fractions=self.fractions)
                return _marked(mark, low, high, pairwise)
            case _:
                mark = bracketed_mark(text, low, high, fractions=self.fractions)
                return _marked(mark, low, high, pairwise)


def _file_one_of(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} or {last}"


def _marked(mark: float | None, low: int, high: int, pairwise: bool) -> Reading | None:
    """Give a mark of one response; of two, how far up the scale the first is preferred."""
    if mark is None:
        return None
    return Preference((mark - low) / (high - low)) if pairwise else Rating(mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMethod:
    """A method as its file says it; see `judge.protocol.Method`.

    Attributes
    ----------
    description : Description
    about : str
        What is asked, in a line.
    fields : tuple of str
        What is shown, of `FIELDS`.
    grammar : Grammar
    score : str or None
        What `arena judge score` makes of the verdicts.
    swap_share : float
        Share of the pairs asked in both orders, unless a run says otherwise.
    fallback : str or None
        Method to ask by where no reply has log-probabilities: a name, or the path of a file.
    length_margin : int or None
        A slight win by a response that is longer by more characters is a tie.
    changes : tuple of str
        What differs from the source, and why.
    text : str
        The file.
    upstream : bool
        Whether its words are those of its source to the letter, without fences if need be.
    checklists : mapping
        Questions by `Case.prompt_id`.
    rubric : str or None
        What the marks stand for.
    """

    description: Description
    about: str
    fields: tuple[str, ...]
    grammar: _Grammar
    score: str | None = None
    swap_share: float = 1.0
    fallback: str | None = None
    length_margin: int | None = None
    changes: tuple[str, ...] = ()
    text: str = field(repr=False)
    upstream: bool = False
    checklists: Checklists = field(default_factory=dict, repr=False)
    rubric: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.description.name

    @property
    def pairwise(self) -> bool:
        """Whether two responses are compared."""
        return self.description.pairwise

    @property
    def reads_turns(self) -> bool:
        """Whether it shows the turns of each side's conversation, and not the last alone."""
        return self.score == "pairwise" or bool({"turns_a", "turns_b"} & {*self.fields})

    @property
    def template(self) -> Template:
        """What is asked, before the case is put in."""
        return self.description.template

    @property
    def by_checklist(self) -> bool:
        """Whether it goes by a checklist of the prompt."""
        return "checklist" in self.fields

    @property
    def unfenced(self) -> tuple[str, ...]:
        """The answers that do not stand between two codes: each could end its own part.

        Turns of a conversation have fences of their own.
        """
        bare = []
        for pieces in (self.template.system, self.template.user):
            places = ["", *pieces[1::2], ""]
            bare += [
                place
                for before, place, after in zip(places, places[1:], places[2:], strict=False)
                if place in ("response_a", "response_b") and {before, after} != {"nonce"}
            ]
        return tuple(bare)

    def with_checklists(self, checklists: Checklists) -> "FileMethod":
        """Return the method with checklists in hand."""
        return replace(self, checklists=checklists)

    def with_rubric(self, rubric: str | None, scale: tuple[int, int] | None) -> "FileMethod":
        """Return the method with a rubric and a scale; None leaves either as it is.

        Raises
        ------
        DataError
            If it shows no rubric or no scale, or either cannot be used.
        """
        method = self
        if rubric is not None:
            if "rubric" not in self.fields:
                raise DataError(
                    f"A rubric is for methods that show one; {self.name!r} does not look at it."
                )
            if not rubric.strip():
                raise DataError("The rubric is empty: state what the marks stand for.")
            method = replace(method, rubric=rubric)
        if scale is not None:
            if not {"low", "high"} <= self.template.places:
                raise DataError(f"A scale is for methods that show it, not for {self.name!r}.")
            if not _is_scale(scale):
                raise DataError(
                    f"A scale runs upwards within 0 and 999, not {scale[0]}-{scale[1]}."
                )
            method = replace(method, grammar=replace(self.grammar, scale=scale))
        return method

    def ask(self, case: Case, nonce: str) -> Request:
        """Return the question about a case; see `judge.protocol.Method`."""
        request = self.description.request(nonce, self._texts(case))
        if not case.images:
            return request
        *before, last = request.messages
        return replace(request, messages=(*before, replace(last, images=case.images)))

    def read(self, case: Case, reply: Reply) -> Reading | FailureClass:
        """Return what a reply says, in the sides as shown, or why it says nothing."""
        if self.grammar.name == "label_probability":
            if reply.finish_reason == FILTERED:
                return FailureClass.REFUSAL
            if reply.logprobs is None:
                return FailureClass.NO_LOGPROBS
            share = label_probability(answer_tokens(reply.logprobs), self.grammar.labels)
            return FailureClass.UNPARSED if share is None else Preference(share)
        n_items = len(_checklist_of(case, self.checklists)) if self.by_checklist else 0
        return read_text(
            reply,
            lambda text: self.grammar.read(text, n_items, self.pairwise),
            may_be_cut=self.grammar.name == "lone_label",
        )

    def settled(self, case: Case) -> Reading | None:
        """Return what is known about a case without asking: equal responses are a tie."""
        same = case.response_a == case.response_b and case.earlier_a == case.earlier_b
        return Preference(0.5) if self.pairwise and same else None

    def _texts(self, case: Case) -> dict[str, str | Turns]:
        """Give the texts of the fields, and of the scale; raises where a case has not one."""
        if self.pairwise:
            pair(case)
        if case.earlier_a and not self.reads_turns:
            raise DataError(
                f"Case {case.id[:12]} has {len(case.earlier_a) + 1} turns on each side, and the "
                f"method {self.name!r} shows one: take a method with turns_a, such as mt_bench."
            )
        texts = {name: self._text(name, case) for name in self.fields}
        if self.grammar.scale:
            texts |= dict(zip(("low", "high"), map(str, self.grammar.scale), strict=True))
        return {name: text for name, text in texts.items() if text is not None}

    def _text(self, name: str, case: Case) -> str | Turns | None:
        match name:
            case "prompt" if case.earlier_a:
                return tuple((turn.role, turn.content) for turn in case.prompt)
            case "prompt":
                return conversation(case)
            case "response_a":
                return _answers(case) if case.earlier_a else case.response_a
            case "response_b":
                return _answers(case.swapped()) if case.earlier_a else case.response_b
            case "turns_a":
                return dialogue(case)
            case "turns_b":
                return dialogue(case.swapped())
            case "reference":
                return self._reference(case)
            case "rubric":
                return self.rubric
            case _:
                items = _checklist_of(case, self.checklists)
                if self.grammar.name != "answers":
                    return "\n".join(f"- {item}" for item in items)
                return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))

    def _reference(self, case: Case) -> str | None:
        if case.reference is None and "reference" not in self.template.given:
            raise DataError(
                f"The method {self.name!r} needs a right answer, and there is none to the prompt "
                f"{case.prompt[-1].content[:60]!r}: give it in a column 'reference'."
            )
        return case.reference

    def to_dict(self) -> dict[str, Any]:
        """Return the file's values, and the hash of its words, as plain values for JSON."""
        return {"name": self.name, **tomllib.loads(self.text), "template_hash": self.template.hash}


def _answers(case: Case) -> Turns:
    """Give the answers of side A to all turns, where the user's turns are shown by themselves."""
    return tuple(turn for turn in dialogue(case) if turn[0] in ("earlier answer", "answer"))


# Reading


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
    """Read a method from a user's file.

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
    method = parsed(read_text_file(path), name, str(path))
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
    _require_keys(source, "", values, TOP)
    _require_keys(source, "[decoding]", values["decoding"], DECODING)
    grammar, upstream = _grammar(source, values["reply"]), values.get("upstream", False)
    template = _template(source, values["template"], upstream=upstream)
    sent = dict(values["decoding"])
    expected = sent.pop("expected_tokens", min(sent["max_tokens"], USUAL_TOKENS))
    method = FileMethod(
        description=Description(
            name=name,
            template=template,
            parameters=Parameters(**sent),
            parser=PARSER,
            pairwise=not {"response_b", "turns_b"}.isdisjoint(values["fields"]),
            samples=values.get("samples", 1),
            tokens_out=expected,
            source=values.get("source", ""),
        ),
        about=values["about"],
        fields=tuple(values["fields"]),
        grammar=grammar,
        score=values.get("score"),
        swap_share=0.0 if values.get("orders") == "one" else 1.0,
        fallback=values.get("fallback"),
        length_margin=values.get("length_margin"),
        changes=tuple(values.get("changes", ())),
        text=text,
        upstream=upstream,
    )
    for wrong, why in _contradictions(method, values):
        if wrong:
            raise DataError(f"{source!r}: {why}.")
    return method


def _grammar(source: str, values: Mapping[str, Any]) -> _Grammar:
    _require_keys(source, "[reply]", values, REPLY)
    name = values["grammar"]
    keys = {key: REPLY[key] for key in REPLY if key == "grammar" or key in GRAMMARS[name]}
    required = {key: replace(one, required=key not in OPTIONAL) for key, one in keys.items()}
    _require_keys(source, f"[reply] of the grammar {name!r}", values, required)
    return _Grammar(
        name=name,
        verdicts={one: Preference(share) for one, share in values.get("verdicts", {}).items()},
        key=values.get("key", ""),
        scale=tuple(values["scale"]) if "scale" in values else None,
        labels=tuple(values.get("labels", ("m", "M"))),
        fractions=values.get("fractions", False),
    )


def _template(source: str, values: str | Mapping[str, Any], *, upstream: bool) -> Template:
    if isinstance(values, str):
        if not NAME.fullmatch(values) or not (files("judge.methods") / f"{values}.toml").is_file():
            msg = f"{source!r}: template is {values!r}: name a published method, for its words."
            raise DataError(msg)
        return published(values).template
    may_be_empty = replace(TEMPLATE["system"], allows=lambda value: isinstance(value, str))
    keys = {**TEMPLATE, "system": may_be_empty} if upstream else TEMPLATE
    _require_keys(source, "[template]", values, keys)
    return Template.of(values["system"], values["user"], values.get("given"))


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
    fences = (
        "put [begin answer ${nonce}] and [end answer ${nonce}] around what others wrote, so that "
        "no answer can end its own fence; upstream = true does without"
    )
    yield (
        not method.upstream and "nonce" not in template.places,
        f"there is no ${{nonce}} in the template: {fences}",
    )
    yield (
        not method.upstream and method.unfenced,
        f"{_quoted(method.unfenced)} stand between no two ${{nonce}}: {fences}",
    )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))
