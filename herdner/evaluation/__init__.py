"""Evaluation of tagged documents: scores, comparisons, errors, consistency and calibration."""
