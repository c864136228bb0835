"""A method of judging as a file says it: what is asked in which words, and how it is read."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from judge.case import Case
from judge.completion import FILTERED, Reply, Request
from judge.errors import FailureClass
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
from judge.methods.checklist import Checklists, checklist_of
from judge.methods.schema import is_scale
from judge.protocol import Description, Template, Turns, conversation, dialogue, pair, read_text
from judge.thoughts import answer_tokens
from rating.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How a reply is read: one of the grammars of `judge.grammar`, and what it offers.

    Attributes
    ----------
    name : str
        One of `judge.methods.schema.GRAMMARS`.
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
                return f"{_one_of(f'[[{name}]]' for name in self.verdicts)}, as its last verdict"
            case "keyed":
                verdicts = _one_of(f'"{name}"' for name in self.verdicts)
                return f'JSON with the key "{self.key}" and the value {verdicts}'
            case "bracketed_mark":
                return f"{mark} in double brackets, as in [[{high}]], as its last mark"
            case "keyed_mark":
                return f'JSON with the key "{self.key}" and {mark}'
            case "label_probability":
                return f"{_one_of(self.labels)} as its first token, with log-probabilities"
            case "lone_label":
                return f"{_one_of(self.labels)}, and nothing else"
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


def _one_of(names: Iterable[str]) -> str:
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
        What is shown, of `judge.methods.schema.FIELDS`.
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
    checklists : mapping
        Questions by `Case.prompt_id`.
    rubric : str or None
        What the marks stand for.
    """

    description: Description
    about: str
    fields: tuple[str, ...]
    grammar: Grammar
    score: str | None = None
    swap_share: float = 1.0
    fallback: str | None = None
    length_margin: int | None = None
    changes: tuple[str, ...] = ()
    text: str = field(repr=False)
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
                raise DataError("The rubric is empty: say what the marks stand for.")
            method = replace(method, rubric=rubric)
        if scale is not None:
            if not {"low", "high"} <= self.template.places:
                raise DataError(f"A scale is for methods that show it, not for {self.name!r}.")
            if not is_scale(scale):
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
            return _weighted(reply, self.grammar.labels)
        n_items = len(checklist_of(case, self.checklists)) if self.by_checklist else 0
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
                return self._checklist(case)

    def _reference(self, case: Case) -> str | None:
        if case.reference is None and "reference" not in self.template.given:
            raise DataError(
                f"The method {self.name!r} needs a right answer, and there is none to the prompt "
                f"{case.prompt[-1].content[:60]!r}: give it in a column 'reference'."
            )
        return case.reference

    def _checklist(self, case: Case) -> str:
        items = checklist_of(case, self.checklists)
        if self.grammar.name != "answers":
            return "\n".join(f"- {item}" for item in items)
        return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))

    def to_dict(self) -> dict[str, Any]:
        """Return the file's values, and the hash of its words, as plain values for JSON."""
        values = tomllib.loads(self.text)
        return {"name": self.name, **values, "template_hash": self.template.hash}


def _answers(case: Case) -> Turns:
    """Give the answers of side A to all turns, where the user's turns are shown by themselves."""
    return tuple(turn for turn in dialogue(case) if turn[0] in ("earlier answer", "answer"))


def _weighted(reply: Reply, labels: tuple[str, str]) -> Reading | FailureClass:
    if reply.finish_reason == FILTERED:
        return FailureClass.REFUSAL
    if reply.logprobs is None:
        return FailureClass.NO_LOGPROBS
    share = label_probability(answer_tokens(reply.logprobs), labels)
    return FailureClass.UNPARSED if share is None else Preference(share)
