"""How good tagged documents are: scores, comparisons, mistakes, repeated names and calibration."""
