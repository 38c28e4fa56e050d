"""Pseudonyms: consistent replacement of names and structured identifiers, and restoration of the originals."""
