"""Types of arrays, by what they hold; a docstring gives the shape."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]
