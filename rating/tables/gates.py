"""What a release gate says, for a pull request and for a server that runs tests."""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from rating.tables.escaping import LINES, in_markdown, visible
from rating.tables.formats import as_json, make_folder, write_text
from rating.uncertainty.gate import Gate

HEADINGS: Mapping[bool | None, str] = {True: "Passes", False: "Fails", None: "Cannot tell"}
NAME = "gate"


def as_markdown(gate: Gate) -> str:
    """Write a comment on a pull request."""
    ask = gate.options
    rows = [
        ("Required", f"{ask.require.replace('-', ' ')}, with a margin of {ask.margin:g} points"),
        ("Lead", gate.lead or "not known"),
        ("Rests on", gate.rests_on),
        ("Votes still needed", "not known" if gate.needed is None else f"{gate.needed:,}"),
    ]
    lines = [
        f"### {HEADINGS[gate.passes]}: {in_markdown(gate.headline)}",
        "",
        f"| Gate | {in_markdown(f'{ask.candidate} against {ask.incumbent}')} |",
        "|---|---|",
        *(f"| {name} | {in_markdown(value)} |" for name, value in rows),
        "",
        "" if gate.passes is not None else in_markdown(f"{gate.why} {gate.verdict}".strip()),
        *(f"\n> {in_markdown(text)}" for text in gate.warnings),
    ]
    return "\n".join(lines).rstrip() + "\n"


def as_junit(gate: Gate) -> str:
    """Write a test suite of one test: it passes, fails, or is skipped where it cannot be told."""
    ask = gate.options
    suite = ET.Element(
        "testsuite",
        name="arena gate",
        tests="1",
        failures=f"{gate.passes is False:d}",
        errors="0",
        skipped=f"{gate.passes is None:d}",
        time="0",
    )
    name = f"{ask.candidate} against {ask.incumbent}, {ask.require}, margin {ask.margin:g} points"
    test = ET.SubElement(suite, "testcase", classname="arena.gate", name=visible(name), time="0")
    if gate.passes is not True:
        kind = "skipped" if gate.passes is None else "failure"
        one = ET.SubElement(test, kind, message=visible(gate.headline), type=gate.answer)
        one.text = visible("\n".join(gate.sentences[1:]), LINES)
    out = ET.SubElement(test, "system-out")
    out.text = visible("\n".join((*gate.sentences, gate.rests_on, *gate.warnings)), LINES)
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def write_gate(gate: Gate, folder: Path) -> None:
    """Write JSON, Markdown and JUnit's XML into a folder, which is made where it is not there.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    make_folder(folder)
    texts = {"json": as_json(gate.to_dict()), "md": as_markdown(gate), "xml": as_junit(gate)}
    for ending, text in texts.items():
        write_text(text, folder / f"{NAME}.{ending}")
