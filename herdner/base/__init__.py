"""Helpers of all other packages: checked arrays, atomic files, seeds, parsing of options, locks and memory checks."""
