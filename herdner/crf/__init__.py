"""Conditional random fields: templates, link rules, objectives, and training of chains and links."""
