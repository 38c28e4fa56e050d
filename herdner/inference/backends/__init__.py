"""The inference backends, one file for each."""
