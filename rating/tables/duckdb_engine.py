"""The engine that reads and writes tables: started once, for that takes longer than a small table.

Imported where a table is first read or written: duckdb takes half a second to import.
"""

from functools import cache

import duckdb


def connected() -> duckdb.DuckDBPyConnection:
    """Give a connection to the process's one engine: what it registers, no other one sees.

    Close it, as a context does; the engine stays. It keeps nothing of the files that it reads,
    which may be others under the same names a moment later.
    """
    return _started().cursor()


@cache
def _started() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"enable_external_file_cache": False})
