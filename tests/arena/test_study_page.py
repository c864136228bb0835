"""The page of the study: verdicts on the arena's own battles against the votes on them."""

from pathlib import Path

from tests.command import Command
from tests.serving import Served, Visitor, quick_arena


def voted(visitor: Visitor, n: int) -> None:
    for number in range(n):
        battle = visitor.play(f"Question {number}")
        visitor.vote(battle, ("model_a", "model_b", "tie")[number % 3])


def judged_and_studied(command: Command, served: Served) -> None:
    """Ask a judge of the battles, and study it, with the commands that the guide gives."""
    done = command(
        "judge", "run", "--method", "pairwise", "--judge", "pocket-judge",
        "--cases", "arena", "--database", served.database, "--out", "verdicts.parquet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = command("study", "judge", served.database, "verdicts.parquet", "--out", "study")
    assert done.returncode == 0, done.stderr


def test_the_study_of_the_arenas_own_votes_is_a_page_from_when_it_is_made(
    tmp_path: Path, command: Command
) -> None:
    with (
        quick_arena(tmp_path, study=tmp_path / "study" / "report.html") as served,
        served.visitor() as ada,
    ):
        voted(ada, 6)
        page = ada.get("/study")
        assert page.status_code == 404
        assert "There is no study of a judge" in page.text
        assert 'href="/study"' not in ada.get("/method").text
        judged_and_studied(command, served)
        page = ada.get("/study")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        for text in ("Can pocket-judge replace human raters?", "6 votes by 1 person"):
            assert text in page.text
        assert page.text.count('href="/leaderboard"') == 1
        assert 'href="/study"' in ada.get("/method").text
        again = ada.get("/study", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.text) == (304, "")
        pseudonym = ada.client.cookies["arena_voter"].split(".")[0]
        assert pseudonym not in page.text


def test_an_arena_without_a_study_has_no_page_of_one(tmp_path: Path) -> None:
    with quick_arena(tmp_path) as served, served.visitor() as ada:
        page = ada.get("/study")
        assert page.status_code == 404
        assert "Open the leaderboard" in page.text
        assert ada.get("/study/", follow_redirects=False).headers["location"] == "/study"
