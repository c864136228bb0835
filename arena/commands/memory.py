"""`arena probe memory`: has a model learnt a benchmark by heart."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from arena import terminal
from arena.commands.arguments import Columns, Database, RosterFile, TableOrJson
from arena.errors import SettingsError
from arena.terminal import plain, show, working, write_json
from rating.tables.files import Files

if TYPE_CHECKING:
    from judge.labels.memory import Memory


def memory(
    benchmark: str | None = None,
    /,
    *,
    model: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    planted: bool = False,
    shards: Annotated[int, Parameter(validator=Number(gte=2))] = 20,
    permutations: Annotated[int, Parameter(validator=Number(gte=1))] = 19,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    columns: Columns = (),
    database: Database = None,
    roster: RosterFile = None,
    form: TableOrJson = "table",
) -> None:
    """Probe whether a model has learnt a benchmark by heart, by the order of its items.

    Nobody who has not seen them together prefers the order in which a benchmark has its items,
    unless that order says something itself, as one by subject does. Needs an endpoint that
    echoes a prompt with its log-probabilities (/completions, as vLLM has it). Log-likelihoods are
    kept in the database: the same command again goes on where it stopped.

    Parameters
    ----------
    benchmark
        File, folder or pattern of its items, in their order (.parquet, .csv, .jsonl).
    model
        A model in the roster.
    planted
        Show the test on two toys: one learnt our labelled prompts in an order, one each alone.
    shards
        Parts of items that follow one another, in each of which they are permuted.
    permutations
        Other orders of each shard; 19 reach p = .05.
    seed
        Of the orders.
    columns
        Read the items from the column of this name, as in prompt=question.
    form
        How to write it.

    Examples
    --------
    arena probe memory --planted
    arena probe memory gsm8k.jsonl --model quartz --roster roster.toml
    """
    from judge.labels import memory as exchangeability

    if planted == (benchmark is not None) or planted == (model is not None):
        raise SettingsError("Name a benchmark and --model, or --planted alone.")
    if benchmark is None or model is None:
        with working("Asking"):
            results = exchangeability.planted(seed, shards, permutations)
    else:
        from arena.commands.embedding import likely_by
        from judge.labels.files import prompts_of

        rows = prompts_of(Files((benchmark,)), dict(columns).get("prompt"))
        items = [exchangeability.BETWEEN.join(texts) for texts in rows]
        asked = exchangeability.orders(items, shards, permutations, seed)
        likely = likely_by(model, database, roster)
        results = {model: exchangeability.memory(asked, likely)}
    if form == "json":
        write_json({"models": [{"model": name, **one.to_dict()} for name, one in results.items()]})
    else:
        _show(results)


def _show(results: "Mapping[str, Memory]") -> None:
    first = next(iter(results.values()))
    about = (
        f"{first.shards} shards, each in its own order and in {first.permutations} others. "
        "A small p says that the model knows the order, and so has seen the benchmark."
    )
    head = ("Model", "p, exact", "p, over shards", "Nats a shard gains")
    rows = [
        (
            name,
            f"{one.p:.3f}",
            f"{one.p_shards:.2g}",
            f"{one.gain.value:+.2f} ({one.gain.lower:+.2f} to {one.gain.upper:+.2f})",
        )
        for name, one in results.items()
    ]
    show(plain(about), terminal.table(head, rows, right=(1, 2)))
