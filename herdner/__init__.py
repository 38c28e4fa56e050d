"""herdner: names tagged consistently across a document, fast, on a CPU.

>>> import herdner
>>> tagger = herdner.load("en")
>>> [entity.text for entity in tagger.tag("Ada Lovelace met Charles Babbage in London.").entities]
['Ada Lovelace', 'Charles Babbage', 'London']
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# (lazy_loader has no types; those of the names stand in __init__.pyi.)

from __future__ import annotations

import lazy_loader

__version__ = "0.1.0"

# The names stand in __init__.pyi. Each is imported when it is first used, so that what is not used costs no time.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
