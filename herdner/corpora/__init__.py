"""Known corpora: what they are, where they come from, and how to get and check their files."""
