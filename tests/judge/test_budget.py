"""What a run costs, before and while it is paid for."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.budget import (
    TOKENS_PER_IMAGE,
    TOKENS_PER_MESSAGE,
    Calibration,
    Ledger,
    Price,
    calibrate,
    cost_of,
    estimate,
    request_tokens,
    tokens_by_rule,
)
from judge.calls import Options, Profile, Terms, forecast
from judge.case import Case, Message, Parameters, Reply, Request
from judge.methods import method as named
from rating.errors import DataError
from tests.judge.scripted import (
    Clock,
    Memory,
    MemoryJournal,
    ScriptedJudge,
    case,
    cases,
    honest,
    judged,
    prefer,
)

PRICE = Price(10.0, 30.0, date(2024, 4, 9))
OPTIONS = Options(judge="judge-1", seed="a secret", concurrency=4, price=PRICE)


def asked(text: str) -> Request:
    return Request((Message("user", text),), Parameters(max_tokens=5))


# Characters a token that o200k_base makes of a line of the Vim tutor in each language.
MEASURED = [
    ("Move the cursor to the first line below marked, and press to delete the word.", 4.53),
    ("Bewegen Sie den Cursor zur ersten unten markierten Zeile und löschen Sie das Wort.", 4.56),
    ("Mueva el cursor a la primera línea señalada abajo y pulse para borrar la palabra.", 4.50),
    ("Переместите курсор к первой строке, отмеченной ниже, и удалите слово.", 3.45),
    ("Μετακινήστε τον δρομέα στην πρώτη γραμμή παρακάτω και διαγράψτε τη λέξη.", 2.67),
    ("将光标移到下面第一行 --> 标记处,按 x 键删除 word 单词。", 1.59),
    ("カーソルを下の --> 最初の行に移動し、x を押して word を削除します。", 1.54),
    ("커서를 아래의 --> 첫 번째 줄로 옮기고 x 를 눌러 단어 word 를 지웁니다.", 1.70),
]


@pytest.mark.parametrize(("text", "characters_per_token"), MEASURED)
def test_the_rule_is_near_what_a_tokeniser_makes_of_each_script(
    text: str, characters_per_token: float
) -> None:
    assert len(text) / tokens_by_rule(text) == pytest.approx(characters_per_token, rel=0.25)


@given(st.text(st.characters(), max_size=50), st.text(st.characters(), max_size=50))
def test_tokens_add_up(one: str, other: str) -> None:
    whole = tokens_by_rule(one + other)
    assert whole == pytest.approx(tokens_by_rule(one) + tokens_by_rule(other))


def test_a_request_is_its_texts_and_what_stands_around_them() -> None:
    turns = Message("system", "a" * 100), Message("user", "a" * 300, ("https://a", "https://b"))
    request = Request(turns, asked("").parameters)
    around = 2 * TOKENS_PER_MESSAGE + 2 * TOKENS_PER_IMAGE
    assert request_tokens(request) == pytest.approx(400 * 0.2 + around)


def test_a_calibration_is_what_was_counted_over_what_the_rule_says() -> None:
    replies = [(100.0, Reply(text="", tokens_in=130, tokens_out=5))] * 3
    uncounted = [(900.0, Reply(text="", tokens_in=None, tokens_out=9))]
    calibration = calibrate([*replies, *uncounted])
    assert (calibration.n, calibration.tokens_out) == (3, 5.0)
    assert calibration.ratio_in == pytest.approx(1.3)
    assert calibrate(uncounted) == Calibration(0, 1.0, None)


def test_an_estimate_without_a_price_has_no_cost_and_not_a_cost_of_zero() -> None:
    assert estimate([100.0], tokens_out=1).cost_usd is None
    assert cost_of(asked("x"), Reply(text="", tokens_in=1, tokens_out=1), None) is None


def test_estimates_add_up_and_an_unknown_cost_stays_unknown() -> None:
    price = Price(10.0, 30.0, date(2024, 4, 9))
    one = estimate([100.0], tokens_out=1, price=price, calibration=Calibration(4, 1.0, 2.0))
    other = estimate([300.0, 100.0], tokens_out=1, price=price)
    both = one + other
    assert (both.n_calls, both.tokens_in, both.tokens_out) == (3, 500.0, 4.0)
    assert both.cost_usd == pytest.approx(price.cost(500, 4))
    assert both.calibration.n == 4
    assert (one + estimate([1.0], tokens_out=1)).cost_usd is None


def test_tokens_that_nobody_counted_are_booked_by_the_rule_and_counted_as_such() -> None:
    ledger = Ledger(PRICE, None)
    cost = ledger.book(0, asked("a" * 1000), Reply(text="a" * 1000))
    assert cost == pytest.approx((200 + 4) * 10e-6 + 200 * 30e-6)
    assert ledger.n_estimated == 1


OUT = Price(0.0, 1_000_000.0, date(2024, 4, 9))  # a dollar a token


def test_nothing_else_is_promised_before_the_first_reply() -> None:
    ledger = Ledger(OUT, 100.0)
    assert [ledger.promise(n, asked("x"), 10) for n in range(2)] == [True, False]
    ledger.withdraw(0)
    assert ledger.promise(1, asked("x"), 10)


def test_the_dearest_reply_is_set_aside_until_the_true_one_is_booked() -> None:
    ledger = Ledger(OUT, 31.0)
    assert ledger.promise(0, asked("x"), 10)
    assert ledger.book(0, asked("x"), Reply(text="", tokens_in=1, tokens_out=1)) == 1.0
    assert [ledger.promise(n, asked("x"), 10) for n in range(1, 5)] == [True] * 3 + [False]
    assert ledger.waits
    ledger.book(1, asked("x"), Reply(text="", tokens_in=1, tokens_out=1))
    assert not ledger.promise(4, asked("x"), 10)
    ledger.withdraw(2)
    assert ledger.promise(4, asked("x"), 10)


def test_an_endpoint_that_goes_beyond_its_limit_of_tokens_is_taken_at_what_it_does() -> None:
    ledger = Ledger(OUT, 100.0)
    ledger.book(0, asked("x"), Reply(text="", tokens_in=1, tokens_out=40))
    assert ledger.most_usd(asked("x"), 10) == 60.0
    assert [ledger.promise(n, asked("x"), 10) for n in range(1, 3)] == [True, False]


def test_tokens_of_thoughts_have_a_price_of_their_own() -> None:
    plain, dear = (Price(1.0, 2.0, date(2026, 11, 1), each) for each in (None, 5.0))
    reply = Reply(text="", tokens_in=100, tokens_out=30, tokens_thinking=20)
    assert cost_of(asked("x"), reply, dear) == pytest.approx((100 + 10 * 2 + 20 * 5) / 1e6)
    assert cost_of(asked("x"), reply, plain) == pytest.approx((100 + 30 * 2) / 1e6)
    less, more = (Ledger(price, 1.0).most_usd(asked("x"), 40) for price in (plain, dear))
    assert more - less == pytest.approx(40 * (5 - 2) / 1e6)  # all of a reply may be thoughts


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_budget_is_an_amount_of_money_and_needs_a_price(limit: float) -> None:
    with pytest.raises(DataError, match="amount of money"):
        Ledger(PRICE, limit)
    with pytest.raises(DataError, match="needs a price"):
        Ledger(None, 1.0)


@pytest.mark.parametrize("dollars", [-1.0, math.inf, -math.inf, math.nan])
def test_a_price_is_finite(dollars: float) -> None:
    with pytest.raises(DataError, match="A price is not negative and finite"):
        Price(1.0, dollars, date(2024, 4, 9))


async def ran(asked: Sequence[Case], memory: Memory, tokens: int) -> float:
    """What a run costs with a judge whose tokeniser makes ``tokens`` per 100 characters."""

    def script(request: Request, before: int) -> Reply:
        reply = prefer(honest)(request, before)
        assert isinstance(reply, Reply)
        rng = np.random.default_rng(request.characters)
        return Reply(
            text=reply.text,
            tokens_in=request.characters * tokens // 100,
            tokens_out=int(rng.integers(50, 400)),
        )

    judge = ScriptedJudge(script, Clock())
    run = await judged(asked, named("pairwise"), judge, MemoryJournal(memory), OPTIONS)
    assert run.spent_usd is not None
    return run.spent_usd


async def test_a_dry_run_after_a_pilot_is_within_a_tenth_of_what_is_then_booked() -> None:
    rng = np.random.default_rng(8)
    texts = ["word " * int(n) for n in rng.lognormal(4.5, 0.7, 240)]
    whole = [case(n, text, "other " + text[::-1]) for n, text in enumerate(texts)]
    memory = Memory()
    await ran(whole[:40], memory, tokens=38)
    foreseen = await forecast(whole, named("pairwise"), MemoryJournal(memory), OPTIONS)
    booked = await ran(whole, memory, tokens=38)
    assert foreseen.n_calls == 400
    assert foreseen.calibration.n == 80
    assert foreseen.cost_usd == pytest.approx(booked, rel=0.1)


async def test_a_forecast_counts_no_settled_and_no_journalled_case() -> None:
    memory, some = Memory(), cases(5)
    await ran(some[:2], memory, tokens=25)
    equal = case(9, "same", "same")
    foreseen = await forecast(
        [*some, some[4], equal], named("pairwise"), MemoryJournal(memory), OPTIONS
    )
    assert foreseen.n_calls == 6
    sampled = await forecast(some, named("alpaca_eval_sampled"), MemoryJournal(memory), OPTIONS)
    assert sampled.n_calls == 50
    assert sampled.tokens_out == 50
    thinks = replace(OPTIONS, terms=Terms(Profile(thinking_tokens=1000)))
    more = await forecast(some, named("alpaca_eval_sampled"), MemoryJournal(), thinks)
    assert more.tokens_out == 50 * (1 + 1000 / 2), "half of the room to think is used"


def test_a_reply_at_half_price_costs_half() -> None:
    reply = Reply(text="A", tokens_in=100, tokens_out=10, discount=0.5)
    assert cost_of(asked("?"), reply, PRICE) == pytest.approx(0.00065)
