"""Fuzzing: random arguments and input files. Each case has a number, by which it can be repeated."""
