"""Write what an installation consists of, as a software bill of materials.

Reads ``requirements.lock`` and prints CycloneDX JSON: each package with its version, the hashes of
the files that may be installed, and its licence as the installed package states it. The same
lock and environment give the same bytes.
"""

import json
import re
import sys
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement

from rating import __version__

ROOT = Path(__file__).parents[1]
OSI = "License :: OSI Approved :: "


def main() -> None:
    """Print the bill of materials of the lock file beside the project's own."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    sys.stdout.write(json.dumps(bill_of(lock), indent=1, ensure_ascii=False) + "\n")


def bill_of(lock: str) -> dict[str, Any]:
    """Describe the packages of a lock file as CycloneDX 1.6 has it."""
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_URL, f"blind-arena {__version__}\n{lock}").urn,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"pkg:pypi/blind-arena@{__version__}",
                "name": "blind-arena",
                "version": __version__,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": [component_of(entry) for entry in re.split(r"\n(?=\S)", lock.strip())],
    }


def component_of(entry: str) -> dict[str, Any]:
    """Describe one package of a lock file: its requirement, and a hash a file.

    Raises
    ------
    ValueError
        If the entry names no single version.
    """
    requirement = Requirement(re.split(r"\s*\\\n", entry)[0])
    version = re.fullmatch(r"==([^*,]+)", str(requirement.specifier))
    if version is None:
        raise ValueError(f"{requirement} names no single version. Write the lock by `make lock`.")
    purl = f"pkg:pypi/{requirement.name}@{version[1]}"
    hashes = [{"alg": "SHA-256", "content": sum_} for sum_ in re.findall(r"sha256:(\w+)", entry)]
    component = {
        "type": "library",
        "bom-ref": purl,
        "name": requirement.name,
        "version": version[1],
        "purl": purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": purl,
                "hashes": hashes,
                "comment": "A file with any one of these hashes is installed.",
            }
        ],
    }
    licences = licences_of(requirement.name, version[1])
    if licences:
        component["licenses"] = licences
    if requirement.marker:
        marker = {"name": "arena:installed-where", "value": str(requirement.marker)}
        component["properties"] = [marker]
    return component


def licences_of(name: str, version: str) -> list[dict[str, Any]]:
    """Give the licences that a package states; none where this version is not installed."""
    try:
        stated = metadata(name)
    except PackageNotFoundError:
        return []
    return _licences(stated) if stated["Version"] == version else []


def _licences(stated: PackageMetadata) -> list[dict[str, Any]]:
    fields = stated.json
    short = str(fields.get("license_expression") or fields.get("license") or "")
    try:
        return [{"expression": canonicalize_license_expression(short)}]
    except InvalidLicenseExpression:
        pass
    names = [
        classifier.removeprefix(OSI)
        for classifier in stated.get_all("Classifier") or []
        if classifier.startswith(OSI)
    ]
    if not names and short and "\n" not in short:
        names = [short]
    return [{"license": {"name": name}} for name in names]


if __name__ == "__main__":
    main()
