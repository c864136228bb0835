"""What a notebook shows of results, in a real browser; names in them come from anywhere."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, expect

import judge
import rating
from arena.judging import endpoint, journal
from tests.browser.test_chat import page_at

pytestmark = pytest.mark.browser

X = "<img src=x onerror=\"document.title='taken'\">"
VOTES = {
    "model_a": [X, "y", "y"] * 20,
    "model_b": ["y", X, X] * 20,
    "winner": ["model_a", "model_b", "model_a"] * 20,
    "prompt_id": [f"p{n}" for n in range(60)],
    "voter": [f"v{n % 20}" for n in range(60)],
}


def test_results_are_tables_in_which_no_name_acts(chromium: Browser, tmp_path: Path) -> None:
    scores = pa.table({"item": [*range(40)] * 2, "model": [X] * 40 + ["y"] * 40})
    scores = scores.append_column("score", pa.array([1.0] * 20 + [0.0] * 20 + [0.5, 0.0] * 20))
    votes, marks, pairs = (tmp_path / name for name in ("votes.parquet", "s.parquet", "p.parquet"))
    texts = {f"response_{side}": ["Long. " * (n % 7 + 1) for n in range(60)] for side in "ab"}
    for table, path in (
        (pa.table(VOTES), votes),
        (scores, marks),
        (pa.table(VOTES | texts | {"prompt": VOTES["prompt_id"]}), pairs),
    ):
        pq.write_table(table, path)
    run = judge.run(
        judge.read_cases(pairs),
        judge.method("pairwise"),
        endpoint("pocket://local/v1", "judge"),
        journal(str(tmp_path / "runs.db")),
    )
    study = judge.study(votes, run.verdicts, rounds=100)
    results = rating.rate(rating.read_votes(votes)), judge.compare(marks), run, study
    page = tmp_path / "page.html"
    page.write_text("".join(one._repr_html_() for one in results), encoding="utf-8")
    with page_at(chromium, page.as_uri()) as (shown, asked):
        expect(shown.locator("table")).to_have_count(4)
        expect(shown.locator("tbody").first).to_contain_text(X)
        assert [shown.locator("img").count(), shown.title(), len(asked)] == [0, "", 1]
        assert shown.locator("tbody td").filter(has_text="undefined").count() == 0
    for one in (results[0], results[1], study):
        table = one.to_arrow()
        assert table.num_rows == len(one.to_pandas()) == len(one.rows)
    assert results[1].to_arrow()["difference"].to_pylist() == [results[1].pairs[0].difference]
