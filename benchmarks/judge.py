"""How fast a judge's run is, and how fast kept replies are read again. `make bench`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # This file is named like the package that it measures: the root goes first on the path.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from benchmarks.judging.run import main

    main()
