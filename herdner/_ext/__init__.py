"""Compiled loops (sources in ``cython_ext/``); their arguments are trusted, so call them through the modules above."""

import importlib.util

if importlib.util.find_spec("herdner._ext.chain") is None:
    raise ImportError(
        "this herdner is a source folder without compiled modules: leave the folder (Python prefers it to an installed"
        " herdner), or install it with pip install --no-build-isolation -e ."
    )
