"""Types of arrays, by what they hold; a docstring gives the shape."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint16]
"""Random numbers of 16 bits, each a probability: all that a round of a bootstrap is drawn from."""
