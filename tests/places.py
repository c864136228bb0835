"""A contract of import-linter: which modules may import a library, as one table."""

from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class PlacesContract(Contract):
    """Each line of `places` is "library, library: module, module", packages with what is below."""

    places = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Find the imports of a library outside its places, and places that import none."""
        broken = []
        for line in cast(list[str], self.places):
            libraries, _, modules = line.partition(":")
            allowed = [module.strip() for module in modules.split(",")]
            used = set()
            for library in (name.strip() for name in libraries.split(",")):
                importers = (
                    graph.find_modules_that_directly_import(library)
                    if library in graph.modules
                    else set()
                )
                for importer in sorted(importers):
                    at = [one for one in allowed if f"{importer}.".startswith(f"{one}.")]
                    used.update(at)
                    if not at:
                        broken.append(f"{importer} imports {library}")
            broken += [f"{one} imports none of {libraries}" for one in allowed if one not in used]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print a line for each import."""
        for line in check.metadata["broken"]:
            output.print_error(f"- {line}")
