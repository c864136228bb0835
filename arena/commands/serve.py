"""Commands that operate an arena: serve it, change its roster, show its status, keep its record.

`arena serve`, `demo` and `simulate`; `arena models`, which changes who battles without a restart;
`arena status`; and `arena verify`, `publish`, `migrate`, `backup` and `restore`.
"""

import asyncio
import gc
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from arena.commands.arguments import (
    Database,
    File,
    Host,
    PolicyName,
    Port,
    RosterFile,
    TableOrJson,
    arena_store,
    policy_named,
    require_folder_of,
)
from arena.domain.model import Model, Release, Roster, Standing
from arena.domain.room_view import Trial
from arena.domain.vote import FAILURES, FailureClass
from arena.errors import SettingsError
from arena.terminal import plain, present, say, show, table, working, write_json
from rating.sentences import plural

if TYPE_CHECKING:
    from arena.boards.bundle import Checked
    from arena.domain.room_view import RaceStanding
    from arena.settings import Settings
    from arena.store.store import Store
    from arena.store.verify import Scope, Verified


# Serving

ANSWERED = "answered"


def serve(
    *, port: Port = None, host: Host = None, database: Database = None, roster: RosterFile = None
) -> None:
    """Serve the arena.

    Each option is also an environment variable: ARENA_PORT, ARENA_HOST, ARENA_DATABASE,
    ARENA_ROSTER. Without a roster, the models in the database are used, else toy models.

    Examples
    --------
    arena serve --roster roster.toml
    arena serve --port 8000 --database sqlite:///team.db --roster roster.toml
    """
    with _loading():
        from arena.settings import read_settings  # help would wait for it and for what it serves

        _serve(read_settings(port=port, host=host, database=database, roster=roster))


def demo(
    *, port: Port = None, host: Host = None, database: Database = None, toys: bool = False
) -> None:
    """Serve a demo arena, with toy models if no others are available: no API key needed.

    Uses, in this order: two or more models of Ollama, llama.cpp, vLLM or LM Studio on this
    machine, or of OPENAI_BASE_URL (with OPENAI_API_KEY); a small model with several settings, if
    the extra `local` is installed; the embedded toy models. Votes are stored in ./arena-demo.db
    unless --database or ARENA_DATABASE names another database.

    Parameters
    ----------
    toys
        Use the embedded toy models, even if other models are available.

    Examples
    --------
    arena demo --toys
    arena demo --port 8000
    """
    with _loading():
        from arena.endpoints.offline import POCKET_MODELS
        from arena.settings import demo_settings

        settings = demo_settings(port=port, host=host, database=database)
        there = () if toys else _local_models()
        if toys or len(there) > 1:
            _serve(settings, lambda: Roster(POCKET_MODELS if toys else there))
        else:
            from arena.endpoints.local import local_model

            local_model()  # loads while the rest does
            _serve(settings, _small_models)


def simulate(
    *,
    votes: Annotated[int, Parameter(validator=Number(gte=1))],
    seed: int = 0,
    database: Database = None,
) -> None:
    """Let simulated voters with known preferences vote on the embedded toy models.

    They use the same code as people, without waiting. Run the command again to resume after an
    interruption; a higher number or another seed adds votes. Leaderboards exclude these votes,
    except /leaderboard?policy=simulated-v1. Votes are stored in ./arena-demo.db unless --database
    or ARENA_DATABASE names another database.

    Parameters
    ----------
    votes
        Number of votes of this seed, including those already stored.
    seed
        Random seed; another seed simulates other voters.

    Examples
    --------
    arena simulate --votes 20
    arena simulate --votes 30 --seed 7 --database sqlite:///try.db
    """
    from arena.endpoints.offline import POCKET_MODELS  # help would wait for all of the arena
    from arena.play.simulation import TASTES
    from arena.settings import demo_settings
    from arena.store.store import Store

    settings = demo_settings(database=database)
    truth = ", ".join(f"{model} {by:+g}" for model, by in TASTES.strengths.items())
    say(f"Simulated ground truth, in log-odds: {truth}.")
    with closing(Store(settings.database)) as store, working("Voting") as advance:
        store.hold_lease()
        store.register(POCKET_MODELS, datetime.now(UTC))
        made = asyncio.run(_simulate(store, votes, seed, advance))
    cast = plural(made, "vote")
    say(f"{cast} cast with seed {seed}. Shown at /leaderboard?policy=simulated-v1.")


def models(*, roster: RosterFile = None) -> None:
    """List the models of the roster, or the models running on this machine if there is no roster.

    Examples
    --------
    arena models
    arena models --roster roster.toml
    """
    from arena.settings import read_roster, read_servers, read_settings

    chosen = read_settings(roster=roster).roster
    there = tuple(read_roster(chosen)) if chosen else _local_models()
    if there:
        rows = [(model.id, model.name, model.endpoint, model.model) for model in there]
        show(table(("Model", "Name", "Endpoint", "Asked for as"), rows, right=()))
    else:
        places = ", ".join(f"{server.name} ({server.url})" for server in read_servers())
        say(f"No models were found at {places}. Write a roster, or use the toy models.")


def check_models(*, roster: RosterFile = None) -> None:
    """Send a small request to every model of a roster, and show its latency or its error.

    The roster may have a single model, such as one to be added.

    Examples
    --------
    arena models check
    arena models check --roster roster.toml
    """
    from arena.endpoints.offline import POCKET_MODELS
    from arena.settings import read_roster, read_settings

    settings = read_settings(roster=roster)
    file = settings.roster
    asked = read_roster(file, to_battle=False) if file else Roster(POCKET_MODELS)
    trials = asyncio.run(_check_all(asked, settings))
    rows = [(model.id, model.endpoint, *_shown(trials[model.id])) for model in asked]
    show(table(("Model", "Endpoint", "First token", "Whole", "Result"), rows, right=()))
    if any(trial.seconds is None for trial in trials.values()):
        sys.exit(1)


def _small_models() -> Roster:
    """Give the variants of the small model, once it answers, and a toy; or the toys alone."""
    from arena.endpoints.local import small_models
    from arena.endpoints.offline import POCKET_MODELS

    try:
        return small_models()
    except SettingsError as error:
        say(f"{error} The toy models battle instead.", error=True)
        return Roster(POCKET_MODELS)


@contextmanager
def _loading() -> Iterator[None]:
    """Keep the garbage collector off while modules load: a fifth of the start. `run` ends it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _serve(settings: "Settings", choose: Callable[[], Roster] | None = None) -> None:
    from arena.logs import set_up
    from arena.server import listen, run

    set_up(settings.log_level, sys.stderr)
    with listen(settings) as listener:
        from arena.app import create_app  # last, for a port in use is said without this wait

        roster = choose() if choose else None
        app = create_app(settings, roster)
        host, port = listener.getsockname()[:2]
        named = f"[{host}]" if ":" in host else host
        say(f"The arena is at http://{named}:{port} (stop with Ctrl+C)")
        if roster:
            say(_described(roster))
        run(app, app.state.drain, settings, listener)


def _described(roster: Roster) -> str:
    from arena.endpoints.local import LOADED, VARIANTS
    from arena.endpoints.offline import POCKET_MODELS

    if roster == POCKET_MODELS:
        return "The models are embedded toys: use them to try the arena, not for answers."
    if roster[0] is VARIANTS[0]:
        return f"{LOADED} A toy model battles it. For toy models alone add --toys."
    names = ", ".join(model.name for model in roster)
    paid = any(model.api_key_env for model in roster)
    cost = " Those behind OPENAI_API_KEY may cost money." if paid else ""
    return f"{len(roster)} models were found: {names}.{cost} For the toy models add --toys."


async def _simulate(
    store: "Store", votes: int, seed: int, advance: Callable[[int, int], None]
) -> int:
    from arena.endpoints.client import Timeouts, reach
    from arena.endpoints.offline import POCKET_MODELS, TOY_EXAMPLES, PocketTransport
    from arena.play.simulation import TASTES, Simulation

    roster = Roster(POCKET_MODELS)
    never = Timeouts(first_token_s=math.inf, idle_s=math.inf)  # nor on a slow machine
    endpoints = reach(roster, {}, {}, PocketTransport(seed, speedup=math.inf), never)
    simulation = Simulation(
        store,
        endpoints.stream,
        roster,
        TASTES,
        prompts=TOY_EXAMPLES,
        seed=seed,
        now=lambda: datetime.now(UTC),
    )
    try:
        return await simulation.run(votes, advance)
    finally:
        await endpoints.aclose()


def _local_models() -> tuple[Model, ...]:
    """Give the models that the servers on this machine, and OPENAI_BASE_URL, offer."""
    from arena.endpoints.trial import discover
    from arena.settings import read_servers

    return asyncio.run(discover(read_servers()))


async def _check_all(models: Roster, settings: "Settings") -> Mapping[str, Trial]:
    from arena.endpoints import trial
    from arena.endpoints.client import reach
    from arena.endpoints.offline import PocketTransport, load_recordings
    from arena.settings import read_keys

    recordings = load_recordings(models)
    keys = read_keys(models, settings.keys)
    pocket = PocketTransport()
    endpoints = reach(models, keys, recordings, pocket, budgets=settings.budgets())
    trials = await trial.try_all(endpoints, models, {m: tuple(r) for m, r in recordings.items()})
    await endpoints.aclose()
    return trials


def _shown(trial: Trial) -> tuple[str, str, str]:
    if trial.seconds is None:
        return "–", "–", f"{trial.failure}: {trial.sentence}"
    without = f", without {', '.join(trial.without)}" if trial.without else ""
    return f"{trial.first_s or 0:.2f} s", f"{trial.seconds:.2f} s", f"{ANSWERED}{without}"


# Roster


def add(file: Path, /, *, database: Database = None) -> None:
    """Add the models of a roster file to the arena.

    A running arena uses them within seconds. For a model that exists already, the file replaces
    all of its settings except the weight. API keys are never stored: set them in the file named by
    ARENA_KEYS, or in the environment of the server.

    Parameters
    ----------
    file
        Roster file.

    Examples
    --------
    arena models add new.toml
    arena models add new.toml --database sqlite:///team.db
    """
    from arena.settings import read_roster
    from arena.store import people, roster

    models = tuple(read_roster(file, to_battle=False))
    with arena_store(database) as store:
        changed = store.write(roster.add, models, people.TERMINAL, datetime.now(UTC))
        for model in changed:
            say(f"{model} answers differently from before: give it a new id.", error=True)
        _show(store)


def enable(model: str, /, *, database: Database = None) -> None:
    """Include a disabled or retired model in new battles.

    Parameters
    ----------
    model
        Model id in the roster.

    Examples
    --------
    arena models enable basalt-large
    arena models enable basalt-large --database sqlite:///team.db
    """
    _change(model, database, standing=Standing.ENABLED)


def disable(model: str, /, *, database: Database = None) -> None:
    """Exclude a model from new battles; its running battles continue.

    Parameters
    ----------
    model
        Model id in the roster.

    Examples
    --------
    arena models disable basalt-large
    arena models disable basalt-large --database sqlite:///team.db
    """
    _change(model, database, standing=Standing.DISABLED)


def retire(model: str, /, *, database: Database = None) -> None:
    """Retire a model: end its running answers and send it no further requests.

    Its votes are kept and count.

    Parameters
    ----------
    model
        Model id in the roster.

    Examples
    --------
    arena models retire basalt-large
    arena models retire basalt-large --database sqlite:///team.db
    """
    _change(model, database, standing=Standing.RETIRED)


def pre_release(model: str, /, *, database: Database = None) -> None:
    """Test a hidden model: pages show its id only, even after a vote.

    Parameters
    ----------
    model
        Model id in the roster.

    Examples
    --------
    arena models pre-release maple-7
    arena models pre-release maple-7 --database sqlite:///team.db
    """
    _change(model, database, release=Release.PRE_RELEASE)


def release(model: str, /, *, database: Database = None) -> None:
    """Show a pre-release model by its name. This cannot be undone.

    The leaderboard marks the model as provisional until it has enough votes after its release.

    Parameters
    ----------
    model
        Model id in the roster.

    Examples
    --------
    arena models release maple-7
    arena models release maple-7 --database sqlite:///team.db
    """
    _change(model, database, release=Release.RELEASED)


def weight(model: str, weight: float, /, *, database: Database = None) -> None:
    """Set how often a model is sampled (with ARENA_SAMPLER=weighted).

    Parameters
    ----------
    model
        Model id in the roster.
    weight
        Relative to the weights of the other models; 0 excludes the model from sampling.

    Examples
    --------
    arena models weight basalt-large 2.5
    arena models weight basalt-large 0 --database sqlite:///team.db
    """
    _change(model, database, weight=weight)


def _change(
    model: str, database: str | None, *, release: Release | None = None, **what: Any
) -> None:
    """Change or release a model of the roster, and show what the roster is then."""
    from arena.domain.battle import Sampler
    from arena.settings import read_settings
    from arena.store import people, roster

    weighted = read_settings(database=database).sampler is Sampler.WEIGHTED
    with arena_store(database) as store:
        with store.writing() as session:
            by, now = people.TERMINAL, datetime.now(UTC)
            if release is None:
                roster.change(session, model, by, now, weighted=weighted, **what)
            else:
                roster.release(session, model, release, by, now)
        _show(store)


def _show(store: "Store") -> None:
    from arena.store import roster

    for problem in store.read(roster.unusable).values():
        say(problem, error=True)
    rows = [
        (
            one.model.id,
            one.model.name,
            one.standing,
            one.release,
            f"{one.model.weight:g}",
            one.model.endpoint,
        )
        for one in store.read(roster.entries)
    ]
    heads = ("Model", "Name", "Standing", "Release", "Weight", "Endpoint")
    show(table(heads, rows, right={4}))


# Status


def status(*, database: Database = None, form: TableOrJson = "table") -> None:
    """Show the last 24 hours: battles, votes, cost and failures.

    For each model: time to first token, cost and last error. Also the state of the test named by
    ARENA_RACE, and the votes that the leaderboard excludes, by reason. Read-only.

    Parameters
    ----------
    form
        Output format.

    Examples
    --------
    arena status
    arena status --database sqlite:///team.db --format json
    """
    from arena.boards.fitted import standing_of
    from arena.domain.vote import DEFAULT
    from arena.settings import read_settings
    from arena.store import blocks, kept_boards, log  # the store takes two seconds to import
    from arena.store.engine import reading_existing
    from arena.store.roster import FAILED_IN_A_ROW
    from judge.studies.gold import study_gold

    settings = read_settings(database=database)
    with reading_existing(settings.database) as session:
        day = kept_boards.status(session, datetime.now(UTC), settings.max_dollars_per_day)
        between = settings.between()
        race = None
        if between:
            votes = blocks.columns(session, DEFAULT, after=log.newest(session))
            race = standing_of(votes, between)
        on_gold = study_gold(log.gold_votes(session))
        excluded = log.excluded(session, DEFAULT)
    failures = [one for model in day["models"] for one in model["failures"]]
    if form == "json":
        of_gold = {"votes": on_gold.votes, "right": on_gold.right, "wrong": asdict(on_gold.wrong)}
        beside = {"race": race and asdict(race), "gold": of_gold, "excluded": excluded}
        for one in failures:
            one["last"] = one["last"].isoformat()
        for one in day["paused"]:
            one["since"] = one["since"].isoformat()
        write_json(day | {"since": day["since"].isoformat()} | beside)
        return
    budget = "no limit" if day["budget"] is None else f"of ${day['budget']:,.2f}"
    head = (
        f"{plural(day['running'], 'battle is', 'battles are')} being answered. In the last 24 "
        f"hours, {day['battles']:,} began, {plural(day['votes'], 'vote was', 'votes were')} cast, "
        f"and ${day['dollars']:,.2f} was spent ({budget})."
    )
    names = ("Model", "Answers", "Failed", "First token", "95%", "Dollars")
    rows = [
        (
            model["model"],
            f"{model['answers']:,}",
            f"{sum(one['times'] for one in model['failures']):,}",
            _seconds(model["first_token_p50_s"]),
            _seconds(model["first_token_p95_s"]),
            f"{model['dollars']:,.2f}",
        )
        for model in day["models"]
    ]
    sentences = [
        f"{one['model']} is paused since {one['since']:%Y-%m-%d %H:%M} UTC: "
        f"{FAILED_IN_A_ROW} answers in a row failed ({FAILURES[one['failure']]}). Resume it: "
        f"arena models enable {one['model']}"
        for one in day["paused"]
    ]
    sentences += [*([_of_race(race)] if race else []), *_on_failures(day["models"])]
    if on_gold.votes:
        sentences.append(f"Gold battles so far: {on_gold.sentences[0]}")
    if excluded:
        most_first = sorted(excluded.items(), key=lambda one: (-one[1], one[0]))
        by_reason = ", ".join(f"{votes:,} {why}" for why, votes in most_first)
        sentences.append(f"{DEFAULT.name} excludes {excluded.total():,} votes: {by_reason}.")
    of_one = ("Voter", "Name", "Answers", "Dollars")
    spenders = [
        (one["voter"][:12], one["name"] or "–", f"{one['answers']:,}", f"{one['dollars']:,.2f}")
        for one in day["spenders"]
    ]
    tables = [table(names, rows)] if rows else []
    tables += [table(of_one, spenders, right=(2, 3))] if spenders else []
    show(plain(head), *tables, *map(plain, sentences))


def _of_race(race: "RaceStanding") -> str:
    first, second = race.between
    if race.lead is None:
        return (
            f"Race of {first} and {second}: inconclusive so far ({plural(race.votes, 'vote')} of "
            f"{plural(race.voters, 'voter')})."
        )
    state = "separated: the race may end" if race.separated else "not separated"
    return (
        f"Race of {first} and {second}: {race.lead:+z.0f} points ({race.lower:+z.0f} to "
        f"{race.upper:+z.0f}) after {race.votes:,} votes of {plural(race.voters, 'voter')}; "
        f"{state} (level {100 * race.level:g}%, valid at any interim look)."
    )


def _on_failures(models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    failures = set()
    for model in models:
        for one in model["failures"]:
            failures.add(one["failure"])
            yield (
                f"{model['model']}: {FAILURES[one['failure']]}, {plural(one['times'], 'time')}, "
                f"last at {one['last']:%Y-%m-%d %H:%M} UTC: {one['sentence']}"
            )
    if FailureClass.AUTH in failures:
        yield "Replace a refused key in the file that ARENA_KEYS names; the next request uses it."
    if FailureClass.NO_CREDIT in failures:
        yield (
            "Add credit for an account at its provider. Its models are not drawn for 10 minutes "
            "after each refusal."
        )


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.2f} s"


# Record and database

NOTED = re.compile("[0-9a-f]{8,64}")


def verify(
    record: str,
    /,
    *,
    head: Annotated[str | None, Parameter(metavar="HASH")] = None,
    form: Annotated[Literal["text", "json"], Parameter(name="--format")] = "text",
) -> None:
    """Verify a vote log or a published folder, and show the first altered row.

    Each vote has a hash that covers the vote and the hash before it (fields: see SECURITY.md in
    the repository). In a database, the counts behind the leaderboards are compared with the votes.
    In a published folder, every file is checked and the ratings are recomputed.
    Exit codes: 2 the input cannot be read, 3 a vote log, count or folder was changed.

    Parameters
    ----------
    record
        Database URL, backup, file of `arena export votes`, or folder of `arena publish`.
    head
        A hash noted earlier, or its first characters: the vote log or folder must contain it.
        Without it, a log whose hashes were all computed again passes.
    form
        Output format.

    Examples
    --------
    arena verify sqlite:///arena.db
    arena verify votes.parquet
    arena verify arena-backup.db --head 3f9c1a07 --format json
    arena verify board
    """
    noted = (head or "").strip().lower()
    if head is not None and not NOTED.fullmatch(noted):
        msg = f"--head {head!r}: give the first 8 to 64 characters of a hash, 0 to 9 and a to f."
        raise SettingsError(msg)
    if "://" not in record and Path(record).is_dir():
        _verify_folder(Path(record), noted, form)
        return
    with working("Verifying") as advance:
        verified = _verified(record, noted, advance)
    whole = verified.problem is None
    result = {"verified": whole, "whole": whole, **asdict(verified)}
    present(result, form, lambda _: say(f"{record}: {_in_words(verified)}"))
    if verified.problem or verified.counts:
        sys.exit(3)


def publish(
    folder: Path,
    /,
    *,
    card: File = None,
    votes_to: File = None,
    policy: PolicyName = None,
    database: Database = None,
) -> None:
    """Write the leaderboard to a folder that anyone can read and verify offline.

    The folder contains a web page, the ratings as JSON and CSV, the evaluation card, the votes
    without texts, and a manifest with a hash of each file: see `arena verify`. Requires a complete
    card (template: docs/guides/publish-and-verify.md): no empty section or statement.
    Exit codes: 2 incomplete card, 3 the vote log cannot be verified.

    Parameters
    ----------
    folder
        New or empty folder.
    card
        TOML file with the operator's part of the evaluation card; ARENA_CARD by default.
    votes_to
        Write the votes to this .parquet file, and only their hash to the folder.

    Examples
    --------
    arena publish board --card card.toml
    arena publish board --card card.toml --votes-to votes.parquet --database sqlite:///arena.db
    """
    from arena.boards.bundle import check_bundle
    from arena.boards.bundle import publish as write
    from arena.pages.studies import bundle_page
    from arena.settings import read_settings, read_statements
    from arena.store.store import existing

    chosen = policy_named(policy)
    require_folder_of(folder, votes_to)
    settings = read_settings(database=database, card=card)
    statements = read_statements(settings.card)
    with working("Publishing") as advance, existing(settings.database) as store:
        written = write(
            store,
            chosen,
            statements,
            settings.call_limits(),
            folder,
            datetime.now(UTC),
            enough=settings.listed_after,
            vote_within=settings.vote_within(),
            page=bundle_page,
            check=lambda made: check_bundle(made, bundle_page).problems,
            votes_to=votes_to,
            progress=advance,
        )
    say(f"{folder}: {written.models:,} models, {written.votes:,} votes, policy {chosen.name}.")
    if votes_to is not None:
        say(f"{votes_to}: the votes. If they are in the folder, everything can be verified.")
    say(f"Hash of the folder: {written.hash}")
    say(f"Newest link of the vote log: {written.head}")


def migrate(*, database: Database = None) -> None:
    """Migrate a database to the schema of this version, or create it.

    Every command that opens the database does this. With several servers, run it once before an
    upgrade and check its output.

    Examples
    --------
    arena migrate
    arena migrate --database postgresql://arena@localhost/arena
    """
    from arena.settings import read_settings
    from arena.store.engine import migrate as bring_up
    from arena.store.engine import newest, opened, shown

    with opened(read_settings(database=database).database) as engine:
        bring_up(engine)
        say(f"{shown(engine)} has schema {newest()}.")


def backup(*, to: Annotated[Path, Parameter(metavar="FILE")], database: Database = None) -> None:
    """Write a consistent copy of a database, which may be in use, to one file.

    Parameters
    ----------
    to
        New file.

    Examples
    --------
    arena backup --to arena-backup.db
    arena backup --database sqlite:///arena-demo.db --to demo-backup.db
    """
    from arena.settings import read_settings
    from arena.store.verify import back_up

    url = read_settings(database=database).database
    with working("Backing up") as advance:
        copied = back_up(url, to, advance)
    say(f"{to}: {_counts(*copied)}")


def restore(file: Path, /, *, database: Database = None) -> None:
    """Restore a backup into a new SQLite or PostgreSQL database.

    Parameters
    ----------
    file
        File written by `arena backup`.

    Examples
    --------
    arena restore arena-backup.db --database sqlite:///restored.db
    arena restore demo-backup.db --database sqlite:///team.db
    """
    from arena.settings import read_settings
    from arena.store import verify as copies

    url = read_settings(database=database).database
    with working("Restoring") as advance:
        copied = copies.restore(file, url, advance)
    say(f"{file}: restored {_counts(*copied)}")


def _verified(record: str, head: str, advance: Callable[[int, int], None]) -> "Verified":
    from arena.boards.record_file import verify_export
    from arena.store.engine import reading_backup, reading_existing
    from arena.store.verify import verify as verify_database
    from rating.tables.duckdb_engine import FORMATS

    file = Path(record)
    if file.suffix in FORMATS:
        return verify_export(file, head)
    with reading_existing(record) if "://" in record else reading_backup(file) as session:
        return verify_database(session, head, advance)


def _verify_folder(folder: Path, noted: str, form: str) -> None:
    from arena.boards.bundle import check_bundle
    from arena.pages.studies import bundle_page

    with working("Verifying"):
        checked = check_bundle(folder, bundle_page, noted)
    if form == "json":
        whole = not checked.problems
        write_json({"verified": whole, "whole": whole, **asdict(checked)})
    else:
        say(f"{folder}: {_of_folder(checked)}")
        for sentence in (*checked.problems, *checked.notes):
            say(f"- {sentence}")
    if checked.problems:
        sys.exit(3)


def _of_folder(checked: "Checked") -> str:
    if n := len(checked.problems):
        return f"{plural(n, 'problem')}."
    if not checked.links:
        return f"files verified, hash {checked.hash}; the votes are not in the folder."
    return (
        f"vote log and board verified, {checked.models:,} models rated again from "
        f"{plural(checked.votes, 'vote')}; hash "
        f"{checked.hash}; {plural(checked.links, 'link')}, the newest with hash {checked.head}."
    )


def _in_words(verified: "Verified") -> str:
    if verified.problem:
        return f"vote log not verified after {plural(verified.links, 'link')}. {verified.problem}"
    words = f"vote log verified, {plural(verified.links, 'link')}"
    if verified.head:
        words += f", the newest with hash {verified.head}"
    words += f". {verified.hashes_only:,} of {verified.votes:,} votes are hashes only"
    if verified.marked and verified.scope:
        words += (
            f". This file does not prove the links before the mark at link {verified.marked:,}"
        )
    elif verified.marked:
        words += f". Hashes bind all that is bound today from link {verified.marked:,} on"
    if verified.noted is not None and verified.noted < (verified.marked or 0):
        words += "; of the hash noted before that, votes bind the choice, who and when alone"
    if verified.erased:
        words += f". {plural(verified.erased, 'text was', 'texts were')} erased; hashes remain"
    if verified.taken_out:
        words += (
            f". Votes deleted: {verified.deleted:,}, with exclusions of them: "
            f"{verified.taken_out - verified.deleted:,}; deletion records name them"
        )
    if (scope := verified.scope) is not None:
        words += f". {_of_scope(scope)}"
    return f"{words}. {verified.counts}" if verified.counts else f"{words}."


def _of_scope(scope: "Scope") -> str:
    if scope.all_votes is None:
        of = f"Exported by version 0.1.0 with policy {scope.policy}"
    else:
        bounds = (("since", scope.since), ("before", scope.until))
        cast = " and ".join(f"{word} {moment}" for word, moment in bounds if moment)
        more = " with --all" if scope.all_votes else ""
        of = f"Exported with policy {scope.policy}{more}, votes cast {cast or 'at any time'}"
    excluded = ", ".join(f"{n:,} {why}" for why, n in scope.excluded.items()) or "none"
    return f"{of}. Votes counted: {scope.counted:,}; excluded: {excluded}"


def _counts(rows: int, votes: int, head: str) -> str:
    newest = f", the newest with hash {head[:16]}" if head else ""
    return f"{plural(rows, 'row')}, among them {plural(votes, 'vote')}{newest}."
