"""Compiled loops (sources in ``cython_ext/``); their arguments are trusted, so call them through the modules above."""
