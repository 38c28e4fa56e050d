"""Fuzzing: what callers and strangers may hand in, at random. Each case is a number, so that it can be had again."""
