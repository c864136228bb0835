"""Ratings of models from pairwise votes; each name of `__init__.pyi` is loaded when it is used."""

import lazy_loader

__version__ = "0.1.1"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
