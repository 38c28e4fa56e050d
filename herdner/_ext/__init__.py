"""Compiled loops (sources in ``cython_ext/``). Each entry point checks the positions in its arguments."""
