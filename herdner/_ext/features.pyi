"""Token features (compiled from cython_ext/features.pyx)."""
