"""The page's fixed HTML: header, panes' heads, prompts to try, vote bar, sheets.

Each constant is one HTML block for Markdown, so none may hold a blank line. Nothing a model
or a visitor wrote comes in here; prompts that the operator offers are escaped.
"""

from collections.abc import Sequence

from arena.ui.markdown import escape

CHIPS = 6
"""Prompts shown in the empty page; the others are in the sheet of prompts."""

TOP = """\
<div class="top">
<header class="site-head">
<a class="brand" href="/">Arena</a>
<nav aria-label="Main">
<a href="/" aria-current="page">Battle</a>
<a href="/leaderboard">Leaderboard</a>
<a href="/votes">My votes</a>
<a href="/method">Method</a>
</nav>
</header>
<h1 class="unseen">Battle</h1>
<p id="hint">Which answer is better? You see two anonymous models. Vote, and we tell you who.</p>
<p id="live" class="unseen" role="status" aria-live="polite"></p>
</div>"""

TABS = """\
<div class="tabs" role="tablist" aria-label="Responses">
<button id="tab-a" role="tab" aria-controls="pane-a" aria-selected="true">
<span class="who"><span class="label">Response A</span><span class="dot"></span></span>
<span class="facts"></span>
</button>
<button id="tab-b" role="tab" aria-controls="pane-b" aria-selected="false">
<span class="who"><span class="label">Response B</span><span class="dot"></span></span>
<span class="facts"></span>
</button>
</div>"""

BAR = """\
<div class="bar">
<p id="note"></p>
<div class="choices votes" role="group" aria-label="Your vote">
<button data-vote="model_a" aria-disabled="true" title="Key 1"><kbd>1</kbd>A is better</button>
<button data-vote="model_b" aria-disabled="true" title="Key 2"><kbd>2</kbd>B is better</button>
<button data-vote="tie" aria-disabled="true" title="Key 3"><kbd>3</kbd>Tie</button>
<button data-vote="both_bad" aria-disabled="true" title="Key 4"><kbd>4</kbd>Both are bad</button>
</div>
<div class="choices next">
<button data-do="again">Try again</button>
<button data-do="new" title="Key N"><kbd>N</kbd>New battle</button>
<button data-do="go-on" title="Key G"><kbd>G</kbd>Go on with these two</button>
</div>
<div class="aside">
<button data-do="regenerate" title="Both answer anew (key R)">again</button>
<button data-vote="skip" title="Reveals nothing, counts nothing">skip</button>
<button data-do="new" title="Leaves this battle without a vote (key N)">new</button>
<button data-do="stop" title="Key Esc">stop</button>
<button data-do="help" title="Key ?" aria-label="Keys">?</button>
</div>
</div>"""

SKELETON = (
    '<div class="skeleton" aria-hidden="true"><p class="echo"></p>'
    "<i></i><i></i><i></i><i></i><i></i></div>"
)
"""Stands where an answer will be; the script writes a prompt on its way into the ``p``."""

HELP = """\
<dialog id="help" aria-labelledby="help-title">
<h2 id="help-title">Keys</h2>
<dl>
<div><dt><kbd>1</kbd></dt><dd>A is better</dd></div>
<div><dt><kbd>2</kbd></dt><dd>B is better</dd></div>
<div><dt><kbd>3</kbd></dt><dd>Tie</dd></div>
<div><dt><kbd>4</kbd></dt><dd>Both are bad</dd></div>
<div><dt><kbd>R</kbd></dt><dd>Both answer anew, before the vote</dd></div>
<div><dt><kbd>N</kbd></dt><dd>New battle</dd></div>
<div><dt><kbd>G</kbd></dt><dd>Go on with these two, after the vote</dd></div>
<div><dt><kbd>/</kbd></dt><dd>Write a prompt</dd></div>
<div><dt><kbd>Enter</kbd></dt><dd>Send it; with Shift, a new line</dd></div>
<div><dt><kbd>Esc</kbd></dt><dd>Stop both answers</dd></div>
<div><dt><kbd>?</kbd></dt><dd>This sheet</dd></div>
</dl>
<p>Keys rest while you write.</p>
<form method="dialog"><button>Close</button></form>
</dialog>"""


def pane_head(side: str) -> str:
    """Head a pane; the script writes the name and the facts after the vote."""
    return f"""\
<div class="pane-head">
<h2>Response {side.upper()}</h2>
<span class="name" id="name-{side}"></span>
<span class="facts" id="facts-{side}"></span>
</div>"""


READABLE = (
    '<p class="note">Once you have voted, everyone here can read the battle. '
    '<a href="/method#privacy">What is stored</a></p>'
)


def prompts_to_try(
    examples: Sequence[str], recorded: Sequence[str] | None, *, readable: bool
) -> str:
    """Offer prompts on the empty page: six prompts, or the first six that recordings answer.

    Parameters
    ----------
    readable : bool
        Whether battles can be read by others once voted on; what people write themselves is
        meant, so recorded prompts need no warning.
    """
    offered = examples if recorded is None else recorded
    invitation = "Try one of these, or ask your own." if recorded is None else "Try one of these."
    chips = "".join(
        f'<li title="{escape(prompt)}">{_prompt_button(prompt)}</li>' for prompt in offered[:CHIPS]
    )
    warning = READABLE if readable else ""
    note = warning if recorded is None else _recorded_note(len(recorded))
    return f'<div class="try">\n<p>{invitation}</p>\n<ul class="chips">{chips}</ul>{note}\n</div>'


def prompt_sheet(recorded: Sequence[str] | None) -> str:
    """List all prompts that recordings answer, to search; nothing in a live arena."""
    if recorded is None:
        return "<div></div>"
    items = "".join(f"<li>{_prompt_button(prompt)}</li>" for prompt in recorded)
    return f"""\
<dialog id="prompts" aria-labelledby="prompts-title">
<h2 id="prompts-title">Recorded prompts</h2>
<label for="prompts-search">Search</label>
<input id="prompts-search" type="search" autocomplete="off">
<p id="prompts-none" hidden>No recorded prompt holds these words.</p>
<ul>{items}</ul>
<form method="dialog"><button>Close</button></form>
</dialog>"""


def _recorded_note(count: int) -> str:
    """Say that only recordings answer, and lead to the list."""
    return (
        '<p class="note">The answers here are recordings, so only recorded prompts are answered. '
        f'<button data-do="prompts">See all {count:,}</button></p>'
    )


def _prompt_button(prompt: str) -> str:
    """Make a button that asks a prompt: its text is the prompt, to the letter."""
    return f"<button data-ask><span>{escape(prompt)}</span></button>"
