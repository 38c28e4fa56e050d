"""Compiled loops (sources in ``cython_ext/``). They trust their arguments: call them through the modules above."""
