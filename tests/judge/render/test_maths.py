import re
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.render.text import ATTRIBUTES, TAGS, mathml

COMMANDS = (
    r"\frac \sqrt { } ^ _ & \\ \left( \right) x 1 + \text{a} \begin{aligned} \end{aligned} \sum "
    r"\lim \href{javascript:x} \style{y} \hspace{9em} \hspace{99em} \unicode{60} < > \" ' $"
)
TEX = st.lists(st.sampled_from(COMMANDS.split()), max_size=12).map(" ".join)


def test_a_formula_is_mathml() -> None:
    assert mathml("x^2", display=False) == (
        '<math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    )


@pytest.mark.parametrize("name", ["aligned", "align", "align*", "split", "eqnarray"])
def test_equations_stand_below_each_other_at_their_signs(name: str) -> None:
    formula = mathml(rf"\begin{{{name}}}a &= b \\ c &= d\end{{{name}}}", display=True)
    assert formula is not None
    assert [len(row) for row in fromstring(formula).iter("mtr")] == [2, 2]


@pytest.mark.parametrize("name", ["gathered", "gather*", "multline"])
def test_gathered_lines_stand_below_each_other(name: str) -> None:
    formula = mathml(rf"\begin{{{name}}}a \\ b\end{{{name}}}", display=True)
    assert formula is not None
    assert len(list(fromstring(formula).iter("mtr"))) == 2


def test_alignedat_takes_its_columns() -> None:
    formula = mathml(r"\begin{alignedat}{2}a &= b\end{alignedat}", display=True)
    assert formula is not None
    assert "".join(fromstring(formula).itertext()) == "a=b"


def test_labels_of_equations_do_not_show() -> None:
    assert mathml(r"x \label{eq:1}\nonumber", display=True) == mathml("x ", display=True)


@pytest.mark.parametrize(("tex", "spaces"), [(r"2\sin x", 2), (r"\log_2 n", 1), (r"\cos(x)", 0)])
def test_a_function_stands_apart_from_what_it_is_applied_to(tex: str, spaces: int) -> None:
    assert str(mathml(tex, display=False)).count("<mspace") == spaces


def test_what_a_limit_goes_to_stands_below_it() -> None:
    assert '<munder><mo movablelimits="true">lim</mo>' in str(
        mathml(r"\lim_{x\to0} f", display=True)
    )


def test_words_in_a_formula_keep_their_spaces() -> None:
    assert "<mtext>if\N{NO-BREAK SPACE}</mtext>" in str(mathml(r"\text{if } x", display=False))


@pytest.mark.parametrize(
    "tex",
    [
        "", "  ", r"\unknown{x}", "a & b", r"\hspace{100em}x", r"\hspace{-100em}x",
        r"\rule{3em}{40em}", r"\newcommand{\a}{\a\a}\a", "x" * 5000, "{" * 300 + "}" * 300,
        r"\phantom{}",
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_no_formula(tex: str) -> None:
    assert mathml(tex, display=False) is None


@pytest.mark.parametrize(
    "tex",
    [
        r"\text{<img src=x onerror=alert(1)>}", r"\text{</math><script>alert(1)</script>}",
        r"\href{javascript:alert(1)}{x}", r"\style{position:fixed;inset:0}{x}",
        r"\class{pane}{x}", r"\color{red}\unicode{x3c}script", "\\text{&lt;b&gt;}<b>",
    ],
)  # fmt: skip
def test_a_hostile_formula_is_only_a_formula(tex: str) -> None:
    assert_safe(mathml(tex, display=True))


@given(TEX)
def test_every_formula_is_known_names_and_attributes(tex: str) -> None:
    assert_safe(mathml(tex, display=True))


def assert_safe(formula: str | None) -> None:
    if formula is None:
        return
    for element in fromstring(formula).iter():
        assert element.tag in TAGS
        assert set(element.attrib) <= ATTRIBUTES
        for length in re.findall(r"width=\"(-?\d+)em", formula):
            assert abs(int(length)) <= 10
