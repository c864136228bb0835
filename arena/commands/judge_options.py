"""What can be asked of a judge, as it is typed."""

from pathlib import Path
from typing import Annotated

import typer

PAIRS = (
    *("pairwise", "alpaca_eval", "alpaca_eval_sampled", "alpaca_eval_verbal", "arena_hard"),
    "wildbench_reward",
)
SINGLES = ("wildbench_score", "rubric", "checklist", "ifeval")
ARENA = "arena"
"""What ``--cases`` calls the battles in the database."""
SAMPLED = "sampled"
"""The fallback from log-probabilities."""

Method = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        help=f"Of two responses: {', '.join(PAIRS)}. Of one: {', '.join(SINGLES)}.",
    ),
]
Judge = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Id in the roster, or pocket-judge, a toy; ifeval needs none."
    ),
]
Cases = Annotated[
    list[str],
    typer.Option(
        metavar="SOURCE",
        help="File of pairs or of responses, several files of outputs (give it again; the first "
        "meets each of the others), or arena: the battles.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Verdicts to write: .parquet, .csv or .jsonl."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be asked, and its cost.")
]
Budget = Annotated[
    float | None, typer.Option(metavar="USD", help="Stop before more than this is spent.")
]
Concurrency = Annotated[int, typer.Option(help="Most requests at a time.", min=1)]
RequestsPerMinute = Annotated[
    float | None, typer.Option(help="Most requests that the endpoint allows a minute.")
]
TokensPerMinute = Annotated[
    float | None, typer.Option(help="Most tokens that it allows a minute.")
]
RubricFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Text that says what the marks stand for, for rubric."),
]
Scale = Annotated[
    str | None, typer.Option(metavar="LOW-HIGH", help="Marks of the rubric; 1-10 if not given.")
]
Margin = Annotated[
    int | None,
    typer.Option(
        "--length-margin",
        metavar="K",
        help="wildbench_reward: a slight win by a response longer by more than K characters is "
        "a tie; 500 if not given, negative for never.",
    ),
]
SwapShare = Annotated[
    float,
    typer.Option(
        "--swap-share",
        metavar="SHARE",
        help="Share of the pairs to ask in both orders; the rest in one, drawn at random.",
    ),
]
Seed = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Draws fences and orders in place of the database's own secret: the same calls on "
        "another database. Who knows it can fake fences.",
    ),
]
Fallback = Annotated[
    str | None,
    typer.Option(
        metavar=SAMPLED,
        help="alpaca_eval: if no reply has log-probabilities, ask all anew as "
        "alpaca_eval_sampled.",
    ),
]
Form = Annotated[
    str | None, typer.Option("--format", metavar="table|json", help="How to tell the end.")
]
