"""herdner in spaCy's pipelines."""
