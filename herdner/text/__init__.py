"""Documents, tags, tokenization, sentence segmentation, and readers and writers of files."""
