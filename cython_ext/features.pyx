# cython: language_level=3
"""Token features (being written)."""
