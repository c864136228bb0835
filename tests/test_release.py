"""What is released: a wheel and an sdist that install anywhere, and their bill of materials."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import httpx2
import pytest
from ruamel.yaml import YAML

from deploy.sbom import bill_of, component_of
from rating import __version__
from tests.command import captured
from tests.deploy.tools import ROOT, TOOLS
from tests.serving import free_port

HOUSES = ("arena", "judge", "rating")
LOCK = ROOT / "requirements.lock"
OWN = f"blind_arena-{__version__}.dist-info"
UV = TOOLS / "uv"


@dataclass(frozen=True)
class Built:
    """A source distribution, the wheel that was built from it, and one built without it."""

    sdist: Path
    wheel: Path
    direct: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build as `make dist` does, and once more straight from the project's folder."""
    folder = tmp_path_factory.mktemp("dist")
    words = ("build", "--require-hashes", "--build-constraints", ROOT / "deploy" / "build.lock")
    _run(UV, *words, "--out-dir", folder / "both", ROOT)
    _run(UV, *words, "--out-dir", folder / "direct", "--wheel", ROOT)
    (sdist,) = folder.glob("both/*.tar.gz")
    (wheel,) = folder.glob("both/*.whl")
    (direct,) = folder.glob("direct/*.whl")
    return Built(sdist, wheel, direct)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of an environment in which the wheel was installed."""
    return _installed(built.wheel, tmp_path_factory.mktemp("clean"), LOCK)


def _installed(wheel: Path, folder: Path, pins: Path, python: str = sys.executable) -> Path:
    """Install a wheel and the versions that a file names; gives the folder of the programs."""
    _run(UV, "venv", "--python", python, folder / "env")
    programs = folder / "env" / "bin"
    _run(UV, "pip", "install", "--python", programs / "python", "-c", pins, wheel)
    return programs


def _run(*words: str | Path) -> str:
    """Run a program outside the project's folder, and give what it printed."""
    done = captured(words, Path("/"), _environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def _environment() -> dict[str, str]:
    """Give an environment in which nothing leads to the project's folder, but to each Python."""
    pythons = map(str, Path.home().glob(".pyenv/versions/3.*/bin"))
    path = os.pathsep.join([*pythons, *os.environ["PATH"].split(os.pathsep)])
    return {k: text for k, text in (os.environ | {"PATH": path}).items() if str(ROOT) not in text}


@contextmanager
def _served(command: Path, folder: Path) -> Iterator[str]:
    """Run `arena demo` in a folder; gives its address."""
    words = [str(command), "demo", "--toys", "--port", str(free_port())]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            words, cwd=folder, env=_environment(), stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address, (folder / "log").read_text()
            yield address.group()
        finally:
            process.terminate()


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_three_houses_and_nothing_else(built: Built) -> None:
    here = {
        str(file.relative_to(ROOT))
        for house in HOUSES
        for file in (ROOT / house).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
        metadata = message_from_bytes(wheel.read(f"{OWN}/METADATA"))
    own = {name for name in names if name.startswith(f"{OWN}/")}
    assert names - own == here
    assert {f"{house}/py.typed" for house in HOUSES} <= here
    assert {"arena/locale/de.po", "arena/ui/static/page.js", "arena/ui/gradio.json"} <= here
    assert [name for name in here if re.search(r"/tests?/|\.(db|parquet|zip|gguf)$", name)] == []
    assert built.wheel.stat().st_size < 2_500_000, "data came in"
    assert f"{OWN}/licenses/LICENSE" in own
    assert (metadata["Version"], metadata["License-Expression"]) == (__version__, "Apache-2.0")


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel_and_holds_what_its_tests_need(built: Built) -> None:
    assert built.wheel.read_bytes() == built.direct.read_bytes()
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Makefile", "pyproject.toml", "requirements-dev.lock", "tests/conftest.py"}
    needed |= {"benchmarks/coverage.py", "deploy/build.lock", "docs/methods.md", "CHANGELOG.md"}
    needed |= {"CITATION.cff", "mkdocs.yml", ".ci/run"}
    assert needed <= names
    assert [name for name in names if re.search(r"\.(db|pyc)$|^\.venv|^dist/", name)] == []


def assert_it_works(programs: Path, folder: Path) -> None:
    """Rate votes, and serve pages in German with their scripts and styles, from outside."""
    assert _run(programs / "arena", "--version") == f"arena {__version__}\n"
    assert "pocket-retrieval" in _run(programs / "arena", "rate", "samples")
    code = "import arena, judge, rating; print(*(m.__file__ for m in (arena, judge, rating)))"
    assert str(ROOT) not in _run(programs / "python", "-c", code)
    with (
        _served(programs / "arena", folder) as url,
        httpx2.Client(base_url=url, headers={"Accept-Language": "de"}, timeout=60) as visitor,
    ):
        pages = {path: visitor.get(path) for path in ("/", "/leaderboard")}
        looks = {
            link
            for page in pages.values()
            for link in re.findall(r'(?:href|src)="(/(?:look|assets)/[^"]+)"', page.text)
        }
        assert [path for path, page in pages.items() if page.status_code != 200] == []
        assert '<html lang="de"' in pages["/leaderboard"].text
        assert len(looks) > 1
        assert [link for link in looks if visitor.get(link).status_code != 200] == []


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(installed: Path, tmp_path: Path) -> None:
    assert_it_works(installed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_it_works_with_the_oldest_and_the_newest_versions_of_what_it_needs(
    built: Built, tmp_path: Path, resolution: str
) -> None:
    pins = tmp_path / "pins.txt"
    words = ("--python", sys.executable, "--resolution", resolution, "--output-file", pins)
    _run(UV, "pip", "compile", "--quiet", *words, ROOT / "pyproject.toml")
    assert_it_works(_installed(built.wheel, tmp_path, pins), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_it_works_with_each_python_that_is_here(
    built: Built, tmp_path: Path, version: str
) -> None:
    try:
        python = _run(UV, "python", "find", "--no-python-downloads", version).strip()
    except AssertionError:
        pytest.skip(f"no Python {version} is installed")
    assert_it_works(_installed(built.wheel, tmp_path, LOCK, python), tmp_path)


@pytest.mark.slow
def test_the_command_named_as_the_distribution_runs_without_being_installed(built: Built) -> None:
    once = (UV, "tool", "run", "--constraints", LOCK, "--from", built.wheel, "blind-arena")
    assert _run(*once, "--version") == f"arena {__version__}\n"
    assert "arena demo [OPTIONS]" in _run(*once, "demo", "--help")


@pytest.mark.slow
def test_programs_that_import_it_are_checked_against_its_types(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "use.py").write_text("import rating\nrating.rate(1)\n")
    check = (TOOLS / "mypy", "--python-executable", installed / "python", "use.py")
    done = captured(check, tmp_path, _environment(), None)
    assert re.findall(r"error: (.+?) to \"rate\"", done.stdout) == ["Argument 1"], done.stdout


def test_the_changelog_s_newest_release_is_the_version_and_each_part_stands_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, release, *_ = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert unreleased.startswith("Unreleased\n")
    assert re.match(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d\n", release)
    parts = re.findall(r"^### (.+)$", release, re.MULTILINE)
    order = ["Added", "Changed", "Fixed", "Removed", "Security", "Renamed"]
    assert parts == [part for part in order if part in parts]
    assert parts
    lines = re.findall(r"^- .+$", text, re.MULTILINE)
    assert len(lines) == len(set(lines))


def test_the_citation_is_valid_and_of_the_newest_release() -> None:
    file = ROOT / "CITATION.cff"
    check = (TOOLS / "check-jsonschema", "--builtin-schema", "vendor.citation-file-format")
    assert _run(*check, file) == "ok -- validation done\n"
    cited = YAML(typ="safe", pure=True).load(file)
    release = f"{cited['version']} - {cited['date-released']}"
    assert cited["version"] == __version__
    assert f"\n## {release}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["license"] == project["license"]
    entry = (ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    for key in ("title", "version", "date-released", "license"):
        name = key.partition("-")[0]
        assert re.search(rf"  {name} += {{{re.escape(cited[key])}}}", entry), key


def test_every_locked_package_is_in_the_bill_of_materials() -> None:
    lock = LOCK.read_text(encoding="utf-8")
    bill = bill_of(lock)
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    assert [(each["name"], each["version"]) for each in bill["components"]] == locked
    hashes = (each["externalReferences"][0]["hashes"] for each in bill["components"])
    assert [one["content"] for of in hashes for one in of] == re.findall(r"sha256:(\w+)", lock)
    here = [each for each in bill["components"] if "properties" not in each]
    assert [each["name"] for each in here if "licenses" not in each] == []
    assert bill == bill_of(lock)


@pytest.mark.slow
def test_the_bill_of_materials_is_valid_cyclonedx(tmp_path: Path) -> None:
    file = tmp_path / "sbom.cdx.json"
    file.write_text(_run(sys.executable, ROOT / "deploy" / "sbom.py"), encoding="utf-8")
    validator = ("run", "--no-project", "--with", "cyclonedx-python-lib[json-validation]==11.*")
    assert _run(UV, *validator, "python", "-c", VALID, file) == "None\n"
    file.write_text(file.read_text().replace("application", "applications"), encoding="utf-8")
    assert "applications" in _run(UV, *validator, "python", "-c", VALID, file)


VALID = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""


def test_a_package_without_a_version_is_no_material() -> None:
    with pytest.raises(ValueError, match=r"numpy>=2 names no single version.*make lock"):
        component_of("numpy>=2 \\\n    --hash=sha256:00")


def test_a_package_that_is_elsewhere_has_no_licence_made_up_for_it() -> None:
    elsewhere = component_of("numpy==0.0.1 ; sys_platform == 'win32' \\\n    --hash=sha256:00")
    assert "licenses" not in elsewhere
    assert elsewhere["properties"][0]["value"] == 'sys_platform == "win32"'
