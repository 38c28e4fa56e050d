"""Readers and writers of general file formats; `herdner.corpora.formats` lists all formats."""
