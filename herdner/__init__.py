"""herdner: names tagged consistently across a document, fast, on a CPU.

>>> import herdner
>>> tagger = herdner.load("en")
>>> [entity.text for entity in tagger.tag("Ada Lovelace met Charles Babbage in London.").entities]
['Ada Lovelace', 'Charles Babbage', 'London']
"""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# (lazy_loader has no types; the types of the public names are in __init__.pyi.)

from __future__ import annotations

import signal
import sys

# `python -m herdner`: until the command line runs, Ctrl-C ends the process without a traceback.
_started = sys.argv[:1] == ["-m"] and "herdner" in sys.orig_argv
if _started and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import importlib.machinery  # noqa: E402
import importlib.util  # noqa: E402
from pathlib import Path  # noqa: E402

__version__ = "0.1.0"


def _installed_package() -> importlib.machinery.ModuleSpec:
    """Return the module spec of the installed herdner; raise `ImportError` if this version is not installed."""
    from importlib.metadata import distributions

    own_folder = Path(__file__).resolve().parents[1]
    search_path = [entry for entry in sys.path if Path(entry).resolve() != own_folder]
    spec = importlib.machinery.PathFinder.find_spec(__name__, search_path)
    versions = [package.version for package in distributions(name=__name__, path=search_path)]
    if spec is None or spec.origin is None or __version__ not in versions[:1]:
        installed = "herdner is not installed"
        if versions:
            installed = f"the installed herdner has version {versions[0]}, not {__version__}"
        raise ImportError(
            f"herdner is imported from a source folder without compiled modules, and {installed}: run Python in another"
            " folder, or run pip install . in the clone of herdner"
        )
    return spec


# Python prefers the source folder in which it is started to an installed package. Without compiled modules the folder
# cannot work, so all modules come from the installed package of the same version.
if importlib.util.find_spec("herdner._ext.chain") is None:
    del sys.modules["herdner._ext"]
    __spec__ = _installed_package()
    assert __spec__.origin is not None
    assert __spec__.submodule_search_locations is not None
    __file__, __loader__, __path__ = __spec__.origin, __spec__.loader, __spec__.submodule_search_locations

import lazy_loader  # noqa: E402  # after the paths are settled

# The public names are listed in __init__.pyi. Each is imported on first use, so unused names cost no time.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
if importlib.util.find_spec("sklearn") is None:  # then help(herdner) and `from herdner import *` work without CRF
    __all__.remove("CRF")  # pyright: ignore
    __dir__ = __all__.copy
