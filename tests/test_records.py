"""What commands and pages show of the same votes is on record: no figure changes by accident.

The records hold what was shown, not what is right: other tests hold that, on votes with known
figures. After an intended change, `RECORD=1 pytest tests/test_records.py` writes them anew.
"""

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pandas import DataFrame

from arena.domain.battle import BattleState, Reason, Remarks
from arena.domain.model import Model
from arena.domain.people import Role
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.play.upkeep import label_votes
from arena.store.store import Store
from rating import __version__
from tests.arena.store.battles import A1, B1, ballot, complete, exclude, new_battle
from tests.command import endpoint_roster, invoke
from tests.process import until
from tests.serving import invited, serve
from tests.sqlite import new_sqlite

RECORDS = Path(__file__).parent / "golden" / "records"
MODELS = ("umber", "basalt", "flint", "mica", "slate", "chalk")
WORDS = ("sea", "harbour", "code", "loop", "law", "court", "river", "stone")
CHOICES = {"tie": Choice.TIE, "model_a": Choice.A, "model_b": Choice.B}
FIGURE = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
PASSING = re.compile(
    r"http://127[\d.:]+|(?<![\w.-])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|/look/\w+/|nonce=\S+|just now|"
    r"\d+ \w+ ago|gerade eben|vor \d+ \w+|(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{22,}|"
    r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+)?(?:Z|\+00:00)?|\b\d\d:\d\d\b|\d\d?\.? "
    r"(?:Jan|Feb|M[aä]r|Apr|Ma[iy]|Ju[nl]|Aug|Sep|O[ck]t|Nov|De[cz])[a-z]*(?: 20\d\d)?|"
    + re.escape(__version__)
)
"""Addresses, hashes, tokens, times and the version, which differ each time."""
ESSENTIAL = ("model", "voter", "promp")
CODED = "--label A<B=model_b --label A=B=tie --label A>B=model_a"
GATE = "gate --candidate umber --incumbent basalt --margin 20"
VERDICTS = "messy.csv --column winner=verdict --where verdict<>''"
COMMANDS = (
    "rate votes.csv", "rate votes.csv --interval bootstrap --rounds 100 --scale 200",
    "rate votes.csv --ties davidson --order-effect --claims these-voters",
    "rate votes.csv --style length --both-bad outcome", "rate votes.csv --by category --pool",
    "rate votes.csv --weights weight --anchor umber=1200 --level 0.9",
    "rate votes.csv --half-life 10 --compare older.json", f"rate {VERDICTS}",
    f"rate {VERDICTS} --by category {CODED}", f"voters {VERDICTS} {CODED}",
    "plan votes.csv", "voters votes.csv --least 5", "mix prompts.csv votes.csv",
    "mix votes.csv --mix code=0.7,law=0.3 --weights mix", "value votes.csv",
    "factors votes.csv --by model,scaffold", "race votes.csv --between umber,basalt",
    "rank rankings.csv", "attack votes.csv", "reasons votes.csv",
    "compare new.csv old.csv other.csv", f"{GATE} votes.csv",
    f"{GATE} --looks 3 --planned 900 votes.csv", f"{GATE} votes.csv owl.csv",
    "study judge votes.csv owl.csv --by category",
    "study judge votes.csv owl.csv --outputs outputs.csv --format md",
    "study judges votes.csv verdicts.csv", "study panel verdicts.csv --votes votes.csv",
    "study scores benchmarks.csv votes.csv",
    "cold-start --votes others.csv --verdicts owl.csv --model umber",
    "judge score owl.csv", "label prompts.csv", "topics prompts.csv",
    "overlap prompts.csv votes.csv", "overlap prompts.csv messy.csv",
    "probe board votes.csv --arenas 12", "probe duplicates votes.csv",
    "probe judge monday.csv tuesday.csv", "probe prompts votes.csv --by category",
    "probe similarity classes.csv --sample 40",
)  # fmt: skip
OF_ARENA = (
    "status", "verify sqlite:///arena.db", "rate sqlite:///arena.db",
    "reasons sqlite:///arena.db", "voters sqlite:///arena.db --least 5",
    *(f"export {k} --to {k}.csv" for k in ("votes", "battles", "answers", "models", "ratings")),
)  # fmt: skip
PAGES = (
    "leaderboard", "leaderboard?view=head-to-head", "leaderboard?view=data",
    "leaderboard?view=adjusted", "leaderboard?category=code",
    "leaderboard.csv", "api/v1/evaluation",
    "evaluation", "models", "mix", "mix.json", "value", "votes", "method", "battles",
    "admin", "admin/models", "admin/people", "admin/voters", "admin/policies", "admin/log",
    "admin/log?before=12abc", "admin/log?before=2", "leaderboard?view=x", "battles?model=umber",
    "admin/battles", "admin/exports", "battles/m3",
)  # fmt: skip


def winner(dice: Random, lead: float, ties: float) -> str:
    if dice.random() < ties:
        return "tie"
    return "model_a" if dice.random() < 1 / (1 + 2.718281828**-lead) else "model_b"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make up votes of 30 people on six models, verdicts, and files beside them."""
    to, dice = tmp_path_factory.mktemp("records"), Random(5)
    pairs, votes = list(combinations(MODELS, 2)), []
    items: dict[str, dict[str, Any]] = {}
    for i in range(1200):
        a, b = pairs[int(dice.random() * 15)][:: 1 if i % 2 else -1]
        prompt, gap = int(dice.random() * 24), MODELS.index(b) - MODELS.index(a)
        outcome = winner(dice, 0.3 * gap, 0.15)
        row: dict[str, Any] = {
            "battle_id": f"b{i}",
            "item_id": "-".join(sorted((a, b, str(prompt)))),
            "prompt_id": f"p{prompt}",
            "prompt": " ".join(f"{WORDS[(prompt * k) % 8]} {prompt + k}" for k in range(9)),
            "category": ("code", "law", "sea")[prompt % 3],
            "model_a": a,
            "model_b": b,
            "winner": "both_bad" if outcome == "tie" and i % 3 == 0 else outcome,
            "voter": f"v{int(30 * dice.random())}",
            "tstamp": f"2026-10-{1 + i // 40:02d}T{i % 24:02d}:00:00Z",
            "weight": 1 + i % 3,
        }
        for side, model in (("a", a), ("b", b)):
            k = MODELS.index(model)
            row |= {
                f"cost_{side}": 0.001 * (1 + k) * (1 + i % 5),
                f"seconds_{side}": 1.5 + 0.5 * k + i % 4,
                f"length_{side}": 200 + 40 * k + i % 90,
                f"scaffold_{side}": ("plain", "tools")[(i + k) % 2],
                f"reasons_{side}": ("useful", "incorrect", "")[(i + k) % 3],
                f"response_{side}": f"{model} says {WORDS[(i + k) % 8]} and {WORDS[k]}",
            }
        votes.append(row)
        items.setdefault(row["item_id"], row | {"gap": gap, "battle_id": row["item_id"]})
    coded = {"model_a": "A>B", "model_b": "A<B", "tie": "A=B", "both_bad": ""}
    blank: list[dict[str, Any]] = [v.copy() for v in votes]
    for i, v in enumerate(blank):
        v |= {key: "" for n, key in enumerate(v) if i % 97 == n and key[:5] not in ESSENTIAL}
    columns = ("battle_id", "item_id", "prompt_id", "prompt", "category", "model_a", "model_b")
    verdicts = [
        {key: item[key] for key in columns}
        | {"winner": winner(dice, slope * item["gap"], 0.1), "judge": judge, "order": "both"}
        for judge, slope in {"owl": 0.45, "hawk": 0.25, "kite": 0.1}.items()
        for item in items.values()
    ]
    answers = {
        (i["prompt_id"], i[f"model_{s}"]): i[f"response_{s}"] for i in items.values() for s in "ab"
    }
    texts = [" ".join(f"{WORDS[(i * k) % 8]} {i + k}" for k in range(9)) for i in range(12, 72)]
    places = {model: place for place, model in enumerate(MODELS)}
    orders = [sorted(MODELS[:4], key=lambda m: places[m] + 4 * dice.random()) for _ in range(150)]
    tables: dict[str, list[Any]] = {
        "votes": votes,
        "messy": [v | {"verdict": coded.get(v.pop("winner"), "")} for v in blank],
        "others": [v for v in votes if "umber" not in (v["model_a"], v["model_b"])],
        "verdicts": verdicts,
        "owl": [v for v in verdicts if v["judge"] == "owl"],
        "outputs": [
            {"prompt_id": prompt, "model": model, "response": text}
            for (prompt, model), text in answers.items()
        ],
        "prompts": [{"prompt": t, "category": ("code", "law")[len(t) % 2]} for t in texts],
        "classes": [{"text": f"words {t} or {i}", "label": i % 3} for i, t in enumerate(texts)],
        "benchmarks": [
            {"model": m, "mmlu": 70 - len(m), "maths": i} for i, m in enumerate(MODELS)
        ],
        "rankings": [
            {"ranking": " > ".join(order), "voter": f"v{i % 20}", "prompt_id": f"p{i % 30}"}
            for i, order in enumerate(orders)
        ],
    }
    for day in ("monday", "tuesday"):
        some = verdicts[:200]
        tables[day] = [v | {"winner": "tie"} if dice.random() < 0.1 else v for v in some]
    for name, share in (("new", 0.7), ("old", 0.55), ("other", 0.5)):
        tables[name] = [{"item": i, "score": int(dice.random() < share)} for i in range(150)]
    for name, rows in tables.items():
        DataFrame(rows).to_csv(to / f"{name}.csv", index=False)
    assert printed("rate others.csv --out older.json", to).startswith("0")
    return to


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Let 16 people vote on 200 battles of four models, and read what is shown of them."""
    folder, dice = tmp_path_factory.mktemp("arena"), Random(2)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    began = today - timedelta(days=3)
    endpoint_roster(folder, "http://127.0.0.1:9/v1", *MODELS[:4])
    store = Store(new_sqlite(folder))
    models = [Model(id=m, name=m.title(), endpoint="pocket://x", model=m) for m in MODELS[:4]]
    store.register(models, began)
    for i in range(200):
        a, b = list(combinations(models, 2))[i % 6][:: 1 if i % 4 < 2 else -1]
        voter, now = Voter(f"w{i % 16}" * 4), began + timedelta(minutes=10 * i)
        gap = MODELS.index(b.id) - MODELS.index(a.id)
        kind = ("Write Python code for", "Translate into French:", "Solve x + 2 =")[i % 3]
        prompt = f"{kind} {WORDS[i % 8]} {i % 40}"
        battle = replace(new_battle(f"m{i}", voter), a=a, b=b, created=now)
        store.open_battle(replace(battle, prompt=prompt, prompt_id=f"q{i % 40}"))
        short = complete("- short\n- list\n" * (i % 3))
        ends = {A1: complete(f"**{a.name}** says {i}."), B1: short}
        store.close_answers(f"m{i}", BattleState.READY, ends, message=None, now=now)
        outcome, cast = CHOICES[winner(dice, 0.5 * gap, 0.15)], now + timedelta(seconds=20)
        store.cast(replace(ballot(f"m{i}", outcome, voter=voter.id), cast=cast))
        if i % 5 == 0:
            why = Remarks(reasons_a=(Reason.USEFUL,), reasons_b=(Reason.INCORRECT,), confidence=2)
            store.remark(f"m{i}", voter.id, why, now, asked=True)
    exclude(store, "m2", DEFAULT, "a known bot")
    label_votes(store, lambda: began + timedelta(days=2))
    store.close()
    return folder


def shown(text: str) -> str:
    """Leave out what differs each time, and keep six digits of each figure."""
    text = FIGURE.sub(lambda f: f[0] if len(f[0]) < 9 else f"{float(f[0]):#.6g}", text)
    return PASSING.sub("…", text)


def on_record(name: str, now: str) -> None:
    record = RECORDS / (re.sub(r"[^a-z0-9]+", "-", name) + ".txt")
    if os.environ.get("RECORD"):
        record.write_text(now, encoding="utf-8")
    then = record.read_text(encoding="utf-8")
    assert FIGURE.sub("#", now) == FIGURE.sub("#", then)
    for new, old in zip(FIGURE.findall(now), FIGURE.findall(then), strict=True):
        last_digit = 10.0 ** -len(old.split(".")[1])
        assert float(new) == pytest.approx(float(old), rel=2e-5, abs=last_digit)


def printed(line: str, folder: Path, *more: str) -> str:
    """Give the exit code of a command and what it prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ran = invoke([*line.split(), *more], 100)
    return f"{ran.returncode}\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("line", COMMANDS)
def test_what_a_command_prints_is_on_record(line: str, folder: Path) -> None:
    data = "" if "--format" in line else printed(line, folder, "--format", "json")
    on_record(line, printed(line, folder) + shown(data))


@pytest.mark.parametrize("line", OF_ARENA)
def test_what_a_command_prints_or_exports_of_an_arena_is_on_record(line: str, arena: Path) -> None:
    ran, file = printed(line, arena), arena / line.split()[-1]
    on_record(line, shown(ran + (file.read_text("utf-8") if "export" in line else "")))


def test_what_the_pages_of_an_arena_show_is_on_record(arena: Path) -> None:
    url, key = f"sqlite:///{arena / 'arena.db'}", "k" * 32
    with (
        serve(database=url, roster=arena / "roster.toml", page=True, secret_key=key) as served,
        served.visitor() as admin,
    ):
        assert admin.post(invited(served, Role.ADMIN)).status_code == 303
        until(lambda: 'class="chips"' in admin.get("/leaderboard").text)
        for path in PAGES:
            for language in ("en", "de")[: 1 if re.search("[?.]|api|admin/", path) else 2]:
                answer = admin.get(f"/{path}", headers={"accept-language": language})
                now = shown(f"{answer.status_code}\n{answer.text}")
                on_record(f"page {path} {language}", now)
