"""Pseudonyms: consistent replacement of names and structured identifiers, and their restoring."""
