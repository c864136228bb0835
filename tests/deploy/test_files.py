"""The rosters, the example of the environment and the page of deploy/."""

import re
from pathlib import Path

import pytest

from arena.settings import FROM_FILES, Settings, read_roster
from rating import __version__
from tests.deploy.tools import DEPLOY, ROOT, ROSTERS, read


@pytest.mark.parametrize("path", ROSTERS, ids=lambda path: path.stem)
def test_every_roster_can_be_read_and_names_two_models_with_a_dated_price(path: Path) -> None:
    models = tuple(read_roster(path))
    assert len(models) == 2
    for model in models:
        assert model.price
        assert model.decoding
        assert model.licence
    assert path.read_text("utf-8").count("example") >= 2


def test_the_rosters_can_be_joined_into_one(tmp_path: Path) -> None:
    assert [path.stem for path in ROSTERS] == ["anthropic", "gemini", "ollama", "openai", "vllm"]
    joined = tmp_path / "roster.toml"
    joined.write_text("\n".join(path.read_text("utf-8") for path in ROSTERS), encoding="utf-8")
    assert len(read_roster(joined)) == 2 * len(ROSTERS)


def test_the_example_of_the_environment_names_every_hosted_provider_s_key() -> None:
    hosted = [DEPLOY / "rosters" / f"{name}.toml" for name in ("openai", "anthropic", "gemini")]
    keys = {model.api_key_env for path in hosted for model in read_roster(path)}
    assert [key for key in keys if f"#{key}=\n" not in read("env.example")] == []


def test_every_setting_that_deploy_names_exists() -> None:
    known = {f"ARENA_{name.upper()}" for name in Settings.model_fields}
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            named = set(re.findall(r"\bARENA_[A-Z_]+\b", path.read_text("utf-8")))
            assert named <= known, path.name


def test_every_setting_that_a_guide_names_exists() -> None:
    known = {f"ARENA_{name.upper()}" for name in Settings.model_fields}
    known |= {f"ARENA_{name.upper()}_FILE" for name in FROM_FILES}
    for page in (ROOT / "docs" / "guides").glob("*.md"):
        named = set(re.findall(r"`(ARENA_[A-Z_]+)[`=]", page.read_text("utf-8")))
        assert named <= known, page.name


def test_the_deployment_guide_is_short_and_begins_with_situations() -> None:
    guide = read("../docs/guides/deploy.md")
    assert len(guide.split()) <= 1500
    assert re.search(r"^\| .+ \|$", guide, re.MULTILINE)[0] == "| your situation | setting |"  # type: ignore[index]


def test_the_space_names_the_wheel_of_this_version_and_the_gradio_that_is_locked() -> None:
    wheel = f"blind_arena-{__version__}-py3-none-any.whl"
    assert read("space/requirements.txt") == f"./{wheel}\n"
    front = read("space/README.md").split("---\n")[1]
    (locked,) = re.findall(r"^gradio==(\S+)", (ROOT / "requirements.lock").read_text(), re.M)
    assert f"sdk_version: {locked}\n" in front
    assert wheel in read("space/README.md")
    assert (DEPLOY / "space" / re.findall(r"^app_file: (.+)$", front, re.M)[0]).exists()


def test_every_local_link_of_the_deployment_s_page_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", read("README.md"))
    assert links
    assert [link for link in links if not (DEPLOY / link).exists()] == []
