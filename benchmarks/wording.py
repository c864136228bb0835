"""Counts phrases that a standard term replaces, in pages, help, errors and documents.

``python -m benchmarks.wording`` fails where a count is above its limit; lower the limits with the
text. ``--list`` prints each place.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[1]
LIMITS = {"pages": 0, "code": 0, "docs": 0}
"""How many phrases each source has at most."""
MOST_WORDS = 45_000
"""Words of README.md and the documents outside docs/reference, as `wc -w` counts."""
DOCUMENTS = ("*.md", "deploy/*.md", "docs/**/*.md")
RELEASED = "\n## 0.1.0"
"""Below it the changelog is history, which stays as it was written."""
SENTENCE = re.compile(r"(?<=[.!?:])\s|\n\s*\n|\n[-|*#]")
KEY = re.compile(r"[a-z_]+|[:+]*\.\d[%efg]?")
"""Names of data, and formats of numbers: no text."""
NAME = re.compile(r"`[^`\n]+`|^ *[\w, ]+ : .*$|^ *(?:>>>|\.\.\.|arena) .*$", re.MULTILINE)
"""Names within a text: of data and options, and lines that are code or commands."""
ALLOWED = {"(?:ring|coordinated votes) (for|against) (.+)"}
"""Texts that match what version 0.1 wrote."""
PHRASES = re.compile(
    r"""\bsay(?:s|ing)?\ (?:whether|what|how|which|who|why)\b
    | \bwho\ (?:beats|meets)\ whom\b | \bwhom\ the\ arena\ knows\b | \bbut\ for\b | \bsave\ for\b
    | \bcannot\ be\ told\b | \bnothing\ is\ said\ of\b | \bnobody\ has\ said\ so\b
    | \b(?:one|a)\ vote\ a\ battle\b | \bso\ many\b | \banew\b | \bas\ good\ as\b
    | \b(?:held|holds?)\ against\b | \bstrewn\b | \bpoints\ of\ a\ per\ cent\b
    | \btastes?\b | \blikings?\b | \bplanted\ errors?\b | \brank\ ranges?\b
    | \b(?:would|could)\ overturn\b | \bset\ aside\b | \b(?:left|leaves?|leaving)\ out\b
    | \b(?:taken?|takes)\ in\ again\b | \bspeaks?\ against\b | \brecord\ is\ whole\b
    | \breferee\b | \bforesees?\b | \bfirst\ answer\ of\ a\ study\b | \bstands?\ in\ for\b
    | \bnoise-freed\b | \blicensed\b | \bunread\b | \bnewcomers?\b | \brings?\b
    | \btombstones?\b | \bentrants?\b | \badmin\ room\b | \bthe\ room\b | \bstrangers?\b
    | \bsomebody\b | \berase\ my\ words\b | \bwhat\ a\ person\ says\b | \bpoints\ won\ or\ lost\b
    | \ballows?\ for\ tastes\b | \bmay\ be\ alike\b | \bparts\ the\ votes\b | \btold\ apart\b
    | (?<![\w.\\])\.\d+\b(?![\w%])""",
    re.IGNORECASE | re.VERBOSE,
)


def texts(root: Path) -> Iterator[tuple[str, str, str]]:
    """Give each text with its source and place."""
    with (root / "arena/locale/de.po").open("rb") as file:
        for message in read_po(file):
            ids = [message.id] if isinstance(message.id, str) else message.id
            yield from (("pages", "arena/locale/de.po", text) for text in ids)
    packages = ("arena", "judge", "rating")
    for path in sorted(path for one in packages for path in root.glob(f"{one}/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield "code", f"{path.relative_to(root)}:{node.lineno}", node.value
    for path in sorted(path for one in DOCUMENTS for path in root.glob(one)):
        text = path.read_text(encoding="utf-8")
        yield "docs", str(path.relative_to(root)), text.split(RELEASED)[0]


def phrases(text: str) -> list[str]:
    """Give the phrases in a text that a standard term replaces."""
    return [" ".join(match[0].split()) for match in PHRASES.finditer(NAME.sub("", text))]


def words(root: Path) -> int:
    """Count the words of README.md and of the documents that are not reference."""
    pages = [root / "README.md", *root.glob("docs/**/*.md")]
    own = [page for page in pages if page.exists() and "reference" not in page.parts]
    return sum(len(page.read_text(encoding="utf-8").split()) for page in own)


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print the counts and the lengths of sentences; 1 where a count is above its limit."""
    counts, lengths = dict.fromkeys(LIMITS, 0), []
    for source, place, text in texts(root):
        known = [] if KEY.fullmatch(text) or text in ALLOWED else phrases(text)
        counts[source] += len(known)
        if source == "docs":
            lengths += [len(one.split()) for one in SENTENCE.split(text)]
        if "--list" in arguments:
            print(*(f"{place}: {phrase}" for phrase in known), sep="\n", end="\n" if known else "")
    above = [source for source, count in counts.items() if count > LIMITS[source]]
    for source, count in counts.items():
        print(f"{source}: {count} phrases that a standard term replaces, limit {LIMITS[source]}")
    count = words(root)
    print(f"docs: {count:,} words without docs/reference, at most {MOST_WORDS:,}")
    above += ["words"] * (count > MOST_WORDS)
    print(f"docs: 95% of the sentences have at most {np.percentile(lengths, 95):.0f} words")
    if above:
        print(f"Above the limit: {', '.join(above)}. See `python -m benchmarks.wording --list`.")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
