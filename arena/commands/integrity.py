"""`arena exclude`, `readmit`, `attack`, `probe names`, `probe words`: what should not count."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from arena import terminal
from arena.commands.arguments import EVERY_ROW, Chosen, Columns, Database, Flat, TableOrJson
from arena.domain.vote import DEFAULT
from arena.terminal import plain, say, show, working, write_json

if TYPE_CHECKING:
    from arena.store.store import Store
    from judge.ifeval.accuracy import Share


def exclude(target: str, /, *, reason: str, database: Database = None) -> None:
    """Leave the votes of a voter, or one vote, out of the leaderboard from here on.

    Nothing is deleted: a row with the reason is added to the record, and the leaderboard says how
    many votes are left out and why. Votes that the voter casts later count.

    Parameters
    ----------
    target
        Id of a voter, or its first 8 characters at the least, or id of a battle for the vote on
        it: see arena voters --format csv, and the address of a battle.
    reason
        Why, in words that anybody may read.

    Examples
    --------
    arena exclude 9f86d081884c7d65 --reason "paid for by a vendor"
    arena exclude b7kq2m --reason "a test of ours" --database sqlite:///arena-demo.db
    """
    from arena.boards import integrity  # the store takes two seconds to import
    from arena.store.people import TERMINAL

    with _store(database) as store:
        done = integrity.exclude(store, target, reason, TERMINAL, datetime.now(UTC))
    before = done.votes - done.changed
    already = f"; {before:,} were before" if before else ""
    say(f"{target}: {done.changed:,} votes are left out of {DEFAULT.name}{already}.")


def readmit(target: str, /, *, reason: str = "readmitted", database: Database = None) -> None:
    """Take the votes of a voter, or one vote, in again that were left out.

    The rows that left them out stay; newer ones take them back. What was readmitted is not left
    out again by arena voters --apply.

    Parameters
    ----------
    target
        As of arena exclude.
    reason
        Why, in words that anybody may read.

    Examples
    --------
    arena readmit 9f86d081884c7d65
    arena readmit b7kq2m --reason "it was a person" --database sqlite:///arena-demo.db
    """
    from arena.boards import integrity
    from arena.store.people import TERMINAL

    with _store(database) as store:
        done = integrity.readmit(store, target, reason, TERMINAL, datetime.now(UTC))
    say(f"{target}: {done.changed:,} votes count again in {DEFAULT.name}.")


def names(database: str, /, *, apply: bool = False, form: TableOrJson = "table") -> None:
    """Flag battles in which an answer says who wrote it: "I am GPT-4, made by OpenAI".

    Answers of battles with a vote are read; names are those of the roster and the known models
    and vendors, in the first person. Speaking of others is no naming of oneself.

    Parameters
    ----------
    database
        Database URL.
    apply
        Leave the votes on these battles out of the leaderboard, by rows that arena readmit takes
        back; held where it would leave out more than a fifth.
    form
        How to write it.

    Examples
    --------
    arena probe names sqlite:///arena.db
    arena probe names sqlite:///arena.db --apply --format json
    """
    from arena.boards.integrity import name_answers
    from arena.store.store import existing

    with working("Reading answers"), existing(database) as store:
        result = name_answers(store, datetime.now(UTC), leave_out=apply)
    if form == "json":
        write_json(asdict(result))
        return
    say(
        f"In {result.named:,} of {result.battles:,} battles a model named itself "
        f"({result.answers:,} answers)."
    )
    for model, n in sorted(result.by_model.items()):
        say(f"{model}: {n:,} answers")
    if result.applied and result.applied.held:
        say("The rule is held: it would leave out more than a fifth of the votes.")
    elif result.applied:
        say(f"{result.applied.votes:,} votes are left out from here on.")


def words(source: list[str], /, *, seed: int = 0, form: TableOrJson = "table") -> None:
    """Say how well a bag of words knows who wrote an answer, on prompts it has not seen.

    Who can tell the models can push one. Answers to one prompt stay together, in five folds;
    models of fewer than 10 answers are left out. Intervals are by prompt.

    Parameters
    ----------
    source
        Database URL, or files of responses (prompt, response, model), or of pairs of them.
    seed
        Another seed deals out the prompts in another way.
    form
        How to write it.

    Examples
    --------
    arena probe words sqlite:///arena.db
    arena probe words answers.jsonl --format json
    """
    from judge.probe.recognition import recognise

    with working("Reading answers"):
        answers = _answers(source)
        models, texts, prompts = ([one[part] for one in answers] for part in range(3))
        result = recognise(models, texts, prompts, seed=seed)
    if form == "json":
        write_json(result.to_dict())
        return
    rows = [
        (one.model, f"{one.answers:,}", _ends(one.recall), ", ".join(one.words))
        for one in sorted(result.models, key=lambda one: -one.recall.rate)
    ]
    head = (
        f"The model of {_ends(result.accuracy)} of the answers is known by their words; "
        f"{result.majority:.0%} would be by always naming the same. {result.groups:,} prompts."
    )
    grid = terminal.table(("Model", "Answers", "Known", "Words"), rows, right=range(1, 3))
    show(plain(head), grid)


def _answers(source: Sequence[str]) -> list[tuple[str, str, str]]:
    """Give model, text and prompt of each answer."""
    if "://" in source[0]:
        from arena.store import exclusions
        from arena.store.engine import reading_existing

        with reading_existing(source[0]) as session:
            return [(one.model, one.text, one.battle) for one in exclusions.answers(session)]
    from judge.tables.cases import read_responses

    return [(one.models[0], one.case.response_a, one.prompt_id) for one in read_responses(source)]


def _ends(share: "Share") -> str:
    return f"{share.rate:.0%} ({share.low:.0%} to {share.high:.0%})"


def attack(
    source: list[str],
    /,
    *,
    strategy: Literal["fan", "target", "omnipresent", "inverted", "always-left", "random"] = "fan",
    accounts: int = 50,
    votes: int = 20,
    model: str | None = None,
    runs: int = 5,
    seed: int = 0,
    columns: Columns = (),
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
) -> None:
    """Say what accounts that attack would do to these votes, with defences on and off.

    Nothing is written. The defences are those of arena voters --apply. Beside it stands how many
    new accounts cannot change the first ranks, whatever they vote.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl) that say who voted, or
        database URL.
    strategy
        fan votes for the model wherever it appears; target on it alone, as who recognises it
        could; omnipresent also against the two above it; inverted for the worse; always-left;
        random by coin.
    accounts
        New accounts.
    votes
        Votes of each.
    model
        The one to push; without it, the one in the middle.
    runs
        Draws of the attackers' votes.
    seed
        Another seed gives other draws.
    columns
        Read a role from the column of this name, as in voter=user; again for more.
    form
        How to write it.

    Examples
    --------
    arena attack votes.parquet
    arena attack votes.parquet --strategy omnipresent --accounts 20 --votes 50 --format json
    """
    from rating.tables.attacks import Attack, simulate  # numpy and duckdb take half a second
    from rating.tables.columns import Columns as Named
    from rating.tables.columns import Reading
    from rating.tables.rows import read_rows

    with working("Attacking") as advance:
        reading = Reading(Named.named(columns), both_bad="tie", ordered=True)
        cast = read_rows(chosen.source(source, columns), reading)
        planned = Attack(strategy, accounts, votes, model)
        result = simulate(cast, planned, runs=runs, seed=seed, progress=advance).to_dict()
    if form == "json":
        write_json(result)
    else:
        _show_attack(result)


def _show_attack(result: Mapping[str, Any]) -> None:
    head = (
        f"{result['accounts']:,} accounts of {result['votes']:,} votes each "
        f"({result['strategy']}) move {result['model']}, on average over {result['runs']:,} runs:"
    )
    rows = [
        (
            which,
            f"{moved['points']:+.0f}",
            terminal.interval(moved["points_low"], moved["points_high"], "+.0f"),
            f"{moved['ranks']:+.1f}",
        )
        for which, moved in result["moved"].items()
    ]
    grid = terminal.table(("Defences", "Points", "In all runs", "Ranks"), rows, right=range(1, 4))
    left_out = (
        f"Left out: {100 * result['left_out']:.0f} % of the attackers' votes, and "
        f"{100 * result['honest_left_out']:.1f} % of the others."
    )
    show(plain(head), grid, plain(left_out), *map(plain, map(_on_hold, result["holds"])))


def _on_hold(held: Mapping[str, Any]) -> str:
    from judge.studies.estimates import plural

    first = "Rank 1 holds" if held["ranks"] == 1 else f"Ranks 1-{held['ranks']} hold"
    if not held["accounts"]:
        ranks = first.split(" hold")[0].replace("R", "r", 1)
        enough = plural(held["sufficient_votes"], "vote")
        return f"One new account may change {ranks}: {enough} would be enough."
    return (
        f"{first} against any {plural(held['accounts'], 'new account')} of as many votes, "
        f"whatever they vote ({plural(held['votes'], 'vote')}); "
        f"{plural(held['sufficient_votes'], 'vote')} would be enough."
    )


def _store(database: str | None) -> "AbstractContextManager[Store]":
    from arena.settings import read_settings
    from arena.store.store import existing

    return existing(read_settings(database=database).database)
