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
            libraries, modules = line.split(": ")
            allowed = unused = {*modules.split(", ")}
            for library in graph.modules & {*libraries.split(", ")}:
                for importer in sorted(graph.find_modules_that_directly_import(library)):
                    at = {one for one in allowed if f"{importer}.".startswith(f"{one}.")}
                    unused = unused - at
                    broken += [] if at else [f"{importer} imports {library}"]
            broken += [f"{one} imports none of {libraries}" for one in sorted(unused)]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print a line for each import."""
        output.print_error("\n".join(f"- {line}" for line in check.metadata["broken"]))
